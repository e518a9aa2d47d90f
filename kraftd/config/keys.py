"""The keys beside those of Kafka's definition, and the keys that are refused or without effect.

Any other key of Kafka's is accepted, checked for its type, and without effect.
"""

from __future__ import annotations

from kraftd.config.daemon import ROWS, rows_of
from kraftd.config.own_token_keys import OwnTokenKeys
from kraftd.config.security_rows import SecurityKeys
from kraftd.configdef import facts
from kraftd.configdef.definition import ConfigDef

OWN_PREFIX = "kraftd."

# The keys that Kafka's definition does not have.
OWN = ConfigDef(tuple(row.definition for row in ROWS.values() if row.definition is not None))

# The keys that a listener may have for itself, as ``listener.name.<listener>.<key>``.
OF_LISTENERS = frozenset(
    (
        *(row.key for section in (SecurityKeys, OwnTokenKeys) for row in rows_of(section)),
        "max.connection.creation.rate",
    )
)

# Keys of controllers without effect here, and why kraftd needs none of them.
WITHOUT_EFFECT: dict[str, str] = {
    "controller.quorum.append.linger.ms": "no write waits for a timer: all go out with the next fsync",
    "client.quota.callback.class": "no Java class computes a client's quota",
    "controller.performance.sample.period.ms": "EventQueueProcessingTimeMs shows how long events take",
    "controller.performance.always.log.threshold.ms": "EventQueueProcessingTimeMs shows how long events take",
    "server.max.startup.time.ms": "a start has no time limit",
}

TOPIC_SOURCES = frozenset(server for servers in facts.TOPIC_SYNONYMS.values() for server, _ in servers)
GROUP_KINDS = ("group.consumer.", "group.share.", "group.streams.")


def is_source_of_resource_configs(name: str) -> bool:
    """Return whether kraftd reads a server key because it is a default or a limit of topics or groups."""
    return name in TOPIC_SOURCES or name.startswith(GROUP_KINDS)
