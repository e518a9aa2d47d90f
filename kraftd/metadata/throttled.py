"""Throttles of replication, as configs name them (KIP-73)."""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.named_tuple import NamedTuple

LEADERS, FOLLOWERS = "leader", "follower"  # the two sides


class Throttled(NamedTuple):
    """Replicas of a topic whose replication is throttled: pairs of partition and broker, or all."""

    replicas: frozenset[tuple[int, int]] = frozenset()
    are_all: bool = False

    def names(self, index: int, broker_id: int) -> bool:
        """Return whether a replica is one of them."""
        return self.are_all or (index, broker_id) in self.replicas


NONE_THROTTLED = Throttled()


def throttled(items: Iterable[str]) -> Throttled:
    """The replicas that the items of a config name: `*`, or partition:broker."""
    named = [one.strip() for one in items]
    if named == ["*"]:
        return Throttled(are_all=True)
    pairs = (one.partition(":") for one in named if one)
    return Throttled(frozenset((int(index), int(broker_id)) for index, _, broker_id in pairs))


def replicas_key(side: str) -> str:
    """The config of topics that names a side's replicas."""
    return f"{side}.replication.throttled.replicas"


def rate_key(side: str) -> str:
    """The config of brokers that limits a side, in bytes a second."""
    return f"{side}.replication.throttled.rate"
