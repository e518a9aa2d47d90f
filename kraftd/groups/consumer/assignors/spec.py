"""What an assignor is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from msgspec import Struct

Uuid = bytes
Partitions = Mapping[Uuid, AbstractSet[int]]  # by topic id
Assigned = dict[str, Partitions]  # by member id
T = TypeVar("T")
Slices = Generator[None, None, T]

PARTITIONS_A_SLICE = 2000
NOTHING: Partitions = {}


class MemberSpec(Struct, frozen=True, gc=False):
    """A member: its subscribed topics that exist, and the partitions that were meant for it so far."""

    instance_id: str | None
    topic_ids: Sequence[Uuid]
    assigned: Partitions


class GroupSpec(Struct, frozen=True):
    """Members in the order of Kafka's maps, and how many partitions each topic of theirs has.

    is_homogeneous: all members are subscribed to the same topics.
    """

    members: dict[str, MemberSpec]
    is_homogeneous: bool
    partition_counts: Mapping[Uuid, int]


Assignor = Callable[[GroupSpec], Slices[Assigned]]


def finish(slices: Slices[T]) -> T:
    """Run all slices at once; return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


class Growing:
    """The partitions of members while they change: what was given is copied before its first change."""

    def __init__(self) -> None:
        self.assigned: Assigned = {}
        self._own: dict[str, dict[Uuid, set[int]]] = {}

    def keep(self, member_id: str, partitions: Partitions) -> None:
        """Begin with what a member has, unchanged."""
        self.assigned[member_id] = partitions

    def change(self, member_id: str) -> dict[Uuid, set[int]]:
        """The partitions of a member, to be changed."""
        own = self._own.get(member_id)
        if own is None:
            own = {topic: set(indexes) for topic, indexes in self.assigned[member_id].items()}
            self.assigned[member_id] = self._own[member_id] = own
        return own
