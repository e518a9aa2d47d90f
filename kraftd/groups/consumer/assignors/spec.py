"""What an assignor is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from msgspec import Struct

from kraftd.ground.java_hashes import HashTable, buckets_for, uuid_hash

Uuid = bytes
Partitions = Mapping[Uuid, AbstractSet[int]]  # by topic id
Assigned = dict[str, Partitions]  # by member id
T = TypeVar("T")
Slices = Generator[None, None, T]
Waits = Generator[int | None, None, T]  # slices; a number is the time in ms until the next one is worthwhile

PARTITIONS_A_SLICE = 2000
MEMBERS_A_SLICE = 200
TOPICS_A_SLICE = 1000
TOPICS_A_MEMBER = TOPICS_A_SLICE // MEMBERS_A_SLICE
PARTITIONS_A_MEMBER = PARTITIONS_A_SLICE // MEMBERS_A_SLICE  # what a member costs beside its partitions
NOTHING: Partitions = {}


class AssignorFailed(Exception):
    """An assignor has raised an exception, or returned what cannot be; the text is for members."""


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
    group_id: str = ""


Assignor = Callable[[GroupSpec], Waits[Assigned]]


def finish(slices: Waits[T]) -> T:
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
        self._own: dict[str, HashTable[Uuid, set[int]]] = {}

    def keep(self, member_id: str, partitions: Partitions) -> None:
        """Begin with what a member has, unchanged."""
        self.assigned[member_id] = partitions

    def change(self, member_id: str) -> HashTable[Uuid, set[int]]:
        """The partitions of a member, to be changed."""
        own = self._own.get(member_id)
        if own is None:
            old = self.assigned[member_id]
            own = HashTable(uuid_hash, buckets_for(len(old)))
            for topic_id, indexes in old.items():
                own[topic_id] = set(indexes)
            self.assigned[member_id] = self._own[member_id] = own
        return own

    def give(self, member_id: str, topic_id: Uuid, given: Iterable[int]) -> None:
        """Give a member partitions of a topic."""
        own = self.change(member_id)
        indexes = own.get(topic_id)
        if indexes is None:
            indexes = own.compute_absent(topic_id, set())
        indexes.update(given)

    def finish(self) -> Slices[Assigned]:
        """What every member has, its topics as Kafka records them: a later target depends on their order."""
        done = TOPICS_A_SLICE
        for member_id, own in self._own.items():
            if done >= TOPICS_A_SLICE:
                done = 0
                yield
            done += TOPICS_A_MEMBER + len(own)
            self.assigned[member_id] = {topic_id: own[topic_id] for topic_id in own.in_order()}
        return self.assigned
