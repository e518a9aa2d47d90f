"""Kafka's metrics a second time, under the names that common dashboards query (`kraftd.metrics.names`).

These boards are made for Apache Kafka behind Prometheus' JMX exporter, whose rules make a name of each mbean.
`STRIMZI` follows the rules of Strimzi's example for a cluster with metrics, `JMX_EXPORTER` those of the
exporter's own example for KRaft. Both write names in lower case, leave `PerSec` out of a meter's name, and
turn a histogram into a count and quantiles. A name that kraftd exposes anyway is not exposed twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from kraftd.metrics.families.family import Family, Read, Samples
from kraftd.metrics.state.readings import Readings

STRIMZI = "strimzi"
JMX_EXPORTER = "jmx-exporter"

_STATE = "current-state"
# Text in Kafka, with the text as a label here: the exporter drops values that are no numbers.
_TEXTS = ("ClusterId", "current-vote-directory-id")
# Meters although they are percentages: the rules read their rate.
_METERS = ("KafkaRequestHandlerPool",)
# Strimzi's rules name the attributes of these types alone, each without the type's dashes.
_STRIMZI_TYPES = ("raft-metrics", "raft-channel-metrics")


def board_families(families: tuple[Family, ...], rules: tuple[str, ...]) -> tuple[Family, ...]:
    """The families of these rule sets that are not among `families` by name."""
    found: dict[str, Family] = {}
    known = {_without_total(family) for family in families}
    for rule in rules:
        for family in families:
            other = _RULES[rule](family)
            if other is not None and _without_total(other) not in known:
                found.setdefault(other.name, other)
    return tuple(found.values())


def _strimzi(family: Family) -> Family | None:
    if not family.bean:
        return None
    bean = _Bean(family.bean)
    if bean.attribute in _TEXTS or bean.name in _TEXTS:
        return None
    if bean.attribute:
        if bean.type not in _STRIMZI_TYPES:
            return None
        type_ = bean.type.replace("-", "")
        if bean.attribute == _STATE:
            return _current_state(family, _prometheus(bean.domain, type_, _STATE), "current_state")
        return _renamed(family, bean.domain, type_, bean.attribute)
    if family.kind == "gauge" and "Percent" in bean.name:
        return _renamed(family, bean.domain, bean.type, bean.name.partition("Percent")[0], "percent")
    return _named(family, bean)


def _jmx_exporter(family: Family) -> Family | None:
    if not family.bean:
        return None
    bean = _Bean(family.bean)
    if bean.attribute in _TEXTS or bean.name in _TEXTS:
        return None
    if bean.attribute == _STATE:
        return _current_state(family, _prometheus(bean.domain, bean.type, _STATE, "info"), "state")
    if bean.attribute:
        return _renamed(family, bean.domain, bean.type, bean.attribute)
    if bean.type in _METERS and "Percent" in bean.name:
        return _renamed(family, bean.domain, bean.type, bean.name.partition("Percent")[0], "percent")
    return _named(family, bean)


_RULES: Mapping[str, Callable[[Family], Family | None]] = MappingProxyType(
    {STRIMZI: _strimzi, JMX_EXPORTER: _jmx_exporter}
)
RULES = tuple(_RULES)


class _Bean:
    """The parts of an mbean, `domain:type=TYPE,name=NAME` or `domain:type=TYPE attribute`."""

    def __init__(self, bean: str) -> None:
        bean, _, self.attribute = bean.partition(" ")
        self.domain, _, properties = bean.partition(":")
        named = dict(part.partition("=")[::2] for part in properties.split(","))
        self.type, self.name = named["type"], named.get("name", "")

    def __repr__(self) -> str:
        return f"<_Bean {self.domain} {self.type} {self.name or self.attribute}>"


def _named(family: Family, bean: _Bean) -> Family:
    """An mbean with a name: a meter is a counter, a histogram a summary, all others are gauges."""
    if family.kind == "counter" and bean.name.endswith("PerSec"):
        return _renamed(family, bean.domain, bean.type, bean.name.removesuffix("PerSec"))
    kind = "summary" if family.kind in ("histogram", "summary") else "gauge"
    return _renamed(family, bean.domain, bean.type, bean.name)._replace(kind=kind)


def _renamed(family: Family, *parts: str) -> Family:
    return family._replace(name=_prometheus(*parts))


def _without_total(family: Family) -> str:
    """The name without the suffix that the library gives to each counter anyway."""
    return family.name.removesuffix("_total") if family.kind == "counter" else family.name


def _current_state(family: Family, name: str, label: str) -> Family:
    """The current state alone, as a label of a 1."""
    return family._replace(name=name, labels=(label,), read=_that_are_one(family.read))


def _that_are_one(read: Read) -> Read:
    def samples(readings: Readings) -> Samples:
        return [(labels, value) for labels, value in read(readings) if value == 1]

    return samples


def _prometheus(*parts: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", "_".join(parts).lower())
