"""Judges throttles of replication: which ones hold a follower back, and which are left over. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.cli.doctor.findings import Finding, warning
from kraftd.metadata.image import Image
from kraftd.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftd.metadata.throttled import FOLLOWERS, LEADERS, rate_key, replicas_key, throttled
from kraftd.metrics.state.survey import Example, Survey

ALL_BROKERS = ""  # the resource with configs for all of them
REMOVE = "kafka-reassign-partitions.sh --verify removes the throttles of a finished plan"


def limits_on(image: Image, one: Example, follower_id: int) -> list[str]:
    """The rates that limit how fast a follower catches up in a partition, by their configs (KIP-73)."""
    config = image.config(TOPIC_RESOURCE, one.topic)
    found = []
    for side, broker_id in ((FOLLOWERS, follower_id), (LEADERS, one.leader)):
        named = throttled(config.get(replicas_key(side), "").split(","))
        rate = _rate(image, side, broker_id)
        if rate is not None and named.names(one.partition, broker_id):
            found.append(f"{rate_key(side)} of node {broker_id} is {rate} bytes a second")
    return found


def judge_throttles(image: Image, found: Survey) -> Iterator[Finding]:
    """Throttles that stayed after a reassignment: they slow down each broker that comes back."""
    if found.reassigning.count:
        return
    for side in (LEADERS, FOLLOWERS):
        key = replicas_key(side)
        topics = sorted(one.name for one in image.topics.values() if _names_any(image, one.name, key))
        rates = [(one, _rate(image, side, one)) for one in sorted(image.brokers)]
        limited = [f"node {one} ({rate})" for one, rate in rates if rate is not None]
        if topics and limited:
            text = (
                f"no partition is reassigned, but {rate_key(side)} limits {', '.join(limited)}, and {key} "
                f"is set for {_some(topics)}"
            )
            yield warning("replicas", "cluster", text, f"{REMOVE}; or delete both with kafka-configs.sh")


def _names_any(image: Image, topic: str, key: str) -> bool:
    named = throttled(image.config(TOPIC_RESOURCE, topic).get(key, "").split(","))
    return named.are_all or bool(named.replicas)


def _some(topics: list[str]) -> str:
    return topics[0] if len(topics) == 1 else f"{topics[0]} and {len(topics) - 1:,} more"


def _rate(image: Image, side: str, broker_id: int) -> str | None:
    key = rate_key(side)
    own = image.config(BROKER_RESOURCE, str(broker_id)).get(key)
    return own if own is not None else image.config(BROKER_RESOURCE, ALL_BROKERS).get(key)
