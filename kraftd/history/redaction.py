"""Hides values of configs, by Kafka's rules: passwords, and keys that Kafka does not know."""

from __future__ import annotations

from kraftd.configdef.definition import broker_def, client_metrics_def, group_def, topic_def
from kraftd.configdef.node import server_key
from kraftd.history.names import RESOURCE_TYPES

REDACTED = "[redacted]"


def is_sensitive(resource_type: int, name: str) -> bool:
    """Return whether a config's value may hold a secret; true for every key without a definition."""
    kind = RESOURCE_TYPES.get(resource_type)
    if kind == "BROKER":
        key = broker_def().get(name) or server_key(name)
    elif kind == "TOPIC":
        key = topic_def().get(name)
    elif kind == "GROUP":
        key = group_def().get(name)
    elif kind == "CLIENT_METRICS":
        key = client_metrics_def().get(name)
    else:
        key = None
    return key is None or key.sensitive


def shown(resource_type: int, name: str, value: str | None) -> str | None:
    """The value, or `[redacted]`; None stays None."""
    return REDACTED if value is not None and is_sensitive(resource_type, name) else value
