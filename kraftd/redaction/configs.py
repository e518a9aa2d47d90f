"""Values of configs, by Kafka's rules: passwords are hidden, and keys that Kafka does not know."""

from __future__ import annotations

from functools import cache, lru_cache

from kraftd.configdef.definition import (
    broker_def,
    broker_quota_def,
    client_metrics_def,
    group_def,
    topic_def,
)
from kraftd.configdef.node import server_key
from kraftd.configdef.resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)

REDACTED = "[redacted]"

_OF_LISTENER = "listener.name."

_DEFINITIONS = {
    TOPIC_RESOURCE: topic_def,
    GROUP_RESOURCE: group_def,
    CLIENT_METRICS_RESOURCE: client_metrics_def,
}


def is_sensitive(resource_type: int, name: str) -> bool:
    """Return whether a config's value may hold a secret; true for every key without a definition."""
    if resource_type == BROKER_RESOURCE:
        if name.startswith(_OF_LISTENER):  # there may be any number of listeners
            _, _, rest = name.removeprefix(_OF_LISTENER).partition(".")
            return _is_sensitive_for_listener(rest)
        key = broker_def().get(name) or server_key(name)
    else:
        definition = _DEFINITIONS.get(resource_type)
        key = None if definition is None else definition().get(name)
    return key is None or key.sensitive


@lru_cache(maxsize=1024)
def _is_sensitive_for_listener(name: str) -> bool:
    key = server_key(f"{_OF_LISTENER}any.{name}")
    return key is None or key.sensitive


def shown(resource_type: int, name: str, value: str | None, show_secrets: bool = False) -> str | None:
    """The value, or `[redacted]`; None stays None."""
    if value is None or show_secrets or not is_sensitive(resource_type, name):
        return value
    return REDACTED


@cache
def public_configs() -> frozenset[tuple[int, str]]:
    """Resource types and keys of configs without secrets; keys of single listeners are left out."""
    found = {(kind, name) for kind, definition in _DEFINITIONS.items() for name in definition()}
    found |= {(BROKER_RESOURCE, name) for name in (*broker_def(), *broker_quota_def())}
    return frozenset((kind, name) for kind, name in found if not is_sensitive(kind, name))
