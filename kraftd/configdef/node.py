"""A node's static configuration: the keys of its .properties file, seen through Kafka's definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from kraftd.configdef import facts
from kraftd.configdef.addresses import parse_voter
from kraftd.configdef.definition import ConfigKey, Value, broker_def, broker_quota_def

T = TypeVar("T")

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")

# Server configs that name one thing in several units or under several names, the one that wins first.
SYNONYM_GROUPS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)


class NodeConfig(dict[str, str]):
    """What is set for a node, as text, by key; ``values`` are all keys, set or not, parsed.

    The text is kept as written, so that it can be shown. A NodeConfig must not be changed.
    """

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> NodeConfig:
        """The same mapping if it is a NodeConfig already, else one made of it."""
        return texts if isinstance(texts, cls) else cls(texts)

    @cached_property
    def typed(self) -> dict[str, Value]:
        """Every key of the server's definition with its value. Raises InvalidValue for one that Kafka
        refuses.
        """
        values = dict(broker_def().defaults())
        for name, text in self.items():
            key = broker_def().get(name)
            if key is not None:
                values[name] = key.parse(text)
        return values

    def value(self, name: str) -> Value:
        """The value of one key. Raises InvalidValue, and KeyError when it is required and not set."""
        text = self.get(name)
        return broker_def()[name].parse(text) if text is not None else broker_def().defaults()[name]

    def integer(self, name: str) -> int:
        """The value of a key whose type is a whole number and whose default is not null."""
        value = self.value(name)
        assert isinstance(value, int)
        return value

    def settings(self, kind: Callable[..., T]) -> T:
        """Settings of a kind. A field has the value of the key that it is named after, with dots for
        underscores; a field without such a key keeps its default.
        """
        keys = {name: name.replace("_", ".") for name in kind.__annotations__}
        return kind(**{name: self.value(key) for name, key in keys.items() if key in broker_def()})

    @cached_property
    def topic_defaults(self) -> dict[str, Value]:
        """The defaults of topic configs that follow from the server's configs, in the topic's units
        (KafkaConfig.extractLogConfigMap).
        """
        values = {topic: self.value(servers[0][0]) for topic, servers in facts.TOPIC_SYNONYMS.items()}
        for topic in ("segment.ms", "segment.jitter.ms", "retention.ms", "flush.ms"):
            values[topic] = self._first_of(facts.TOPIC_SYNONYMS[topic])
        retention_ms = values["retention.ms"]
        if isinstance(retention_ms, int) and retention_ms < 0:
            values["retention.ms"] = -1
        return values

    @cached_property
    def voter_ids(self) -> frozenset[int]:
        """The ids of ``controller.quorum.voters``."""
        entries = self.value("controller.quorum.voters")
        return (
            frozenset(parse_voter(entry)[0] for entry in entries)
            if isinstance(entries, list)
            else frozenset()
        )

    def _first_of(self, servers: tuple[tuple[str, int], ...]) -> Value:
        """The first of several server configs that is not null, in the unit of the topic config."""
        for name, factor in servers:
            value = self.value(name)
            if isinstance(value, int):
                return value * factor
        return None

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __repr__(self) -> str:
        return f"<NodeConfig of {len(self)} keys>"


def server_key(name: str) -> ConfigKey | None:
    """The definition of a server's key: static, dynamic, or a listener's (``listener.name.<name>.<key>``)."""
    for candidate in (name, *server_synonyms(name)):
        key = broker_def().get(candidate) or broker_quota_def().get(candidate)
        if key is not None:
            return key
    return None


def server_synonyms(name: str) -> tuple[str, ...]:
    """The keys that may set the same server config; the first with a value wins (DynamicBrokerConfig)."""
    for group in SYNONYM_GROUPS:
        if name in group:
            return group
    if name == "log.flush.interval.ms":
        return name, "log.flush.scheduler.interval.ms"
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return (name,)
    base = match[1]
    return name, next((key for key in sorted(facts.LISTENER_MECHANISM) if base.endswith(key)), base)
