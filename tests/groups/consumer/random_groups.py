"""Groups whose members and topics change at random, and what assignors give them, in words."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from random import Random
from typing import Any, TypeVar

from kraftd.ground.java_hashes import grown_order, hash_map_order, uuid_hash
from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, MemberSpec, Partitions
from kraftd.groups.share.assignor import assign_simply
from kraftd.types import uuid_text

R = TypeVar("R")

CASES = 100
CHANGES = 4  # of each case: the assignment of one is the beginning of the next
KAFKAS = {"uniform": "06cc837425fbb6fa", "range": "915230c5c0899d7f", "simple": "877af4a253abbca6"}
"""A digest of what Kafka's assignors give all cases, by `text_of`."""


def listed(partitions: Partitions) -> str:
    return ",".join(f"{uuid_text(topic)}:{dotted(indexes)}" for topic, indexes in partitions.items())


def dotted(indexes: object) -> str:
    return ".".join(map(str, sorted(indexes)))  # type: ignore[call-overload]


def text_of(assigned: Assigned) -> str:
    def of_topics(partitions: Partitions) -> str:
        rows = grown_order(list(partitions), uuid_hash)
        return "{" + ", ".join(f"{uuid_text(topic)}={dotted(partitions[topic])}" for topic in rows) + "}"

    return "".join(f"{member}{of_topics(assigned[member])};" for member in sorted(assigned))


class Group:
    """A group whose members and topics come, change and go."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.is_homogeneous = random.random() < 0.5
        most = random.choice([3, 8, 40])
        self.few_buckets = random.random() < 0.5
        self.topics = {self.topic_id(): random.randint(1, most) for _ in range(random.randint(1, 6))}
        self.members: dict[str, tuple[str | None, frozenset[bytes]]] = {}
        self.assigned: Assigned = {}
        for _ in range(random.randint(1, random.choice([3, 12, 30]))):
            self.join()
        self.level()

    def topic_id(self) -> bytes:
        """One of any hash, or of one of two, so that topics share a bucket of Java's maps."""
        return self.random.randbytes(16) if not self.few_buckets else self.colliding_id()

    def colliding_id(self) -> bytes:
        half = self.random.randbytes(8)
        other = int.from_bytes(half, "big") ^ self.random.choice([5, 6])
        return half + other.to_bytes(8, "big")

    def subscription(self) -> frozenset[bytes]:
        some = self.random.sample(sorted(self.topics), self.random.randint(0, len(self.topics)))
        return frozenset(some)

    def join(self) -> None:
        instance = f"i{self.random.randint(0, 99)}" if self.random.random() < 0.3 else None
        if instance not in {one for one, _ in self.members.values() if one}:
            self.members[f"m{self.random.getrandbits(30)}"] = (instance, self.subscription())

    def level(self) -> None:
        """In a homogeneous group all members get the same subscription."""
        if self.is_homogeneous:
            shared = self.subscription()
            self.members = {name: (instance, shared) for name, (instance, _) in self.members.items()}

    def change(self) -> None:
        act = self.random.random()
        if act < 0.3:
            for _ in range(self.random.randint(1, 4)):
                self.join()
        elif act < 0.55 and len(self.members) > 1:
            gone = self.random.choice(sorted(self.members))
            del self.members[gone]
            self.assigned.pop(gone, None)
        elif act < 0.75:
            topic = self.random.choice(sorted(self.topics))
            self.topics[topic] += self.random.randint(1, 9)
        elif act < 0.9:
            self.topics[self.topic_id()] = self.random.randint(1, 20)
        else:
            changed = self.random.choice(sorted(self.members))
            self.members[changed] = (self.members[changed][0], self.subscription())
        self.level()

    def spec(self) -> GroupSpec:
        members = {}
        for name in hash_map_order(self.members):
            instance, topics = self.members[name]
            ordered = grown_order(sorted(topics), uuid_hash)
            members[name] = MemberSpec(instance, ordered, self.assigned.get(name, {}))
        return GroupSpec(members, self.is_homogeneous, self.topics)


def counted(slices: Generator[Any, None, R]) -> tuple[R, int]:
    """The result of long work such as that of an assignor, and how many pauses it makes."""
    pauses = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def assignments(name: str) -> Iterator[tuple[GroupSpec, str, int]]:
    """Groups in all their states, what an assignor gives them, and after how many pauses."""
    random = Random(f"assignors-{name}")
    for _ in range(CASES):
        group = Group(random)
        for _ in range(CHANGES):
            spec = group.spec()
            group.assigned, pauses = counted(ASSIGNORS[name](spec))
            yield spec, text_of(group.assigned), pauses
            group.change()


def share_assignments() -> Iterator[tuple[GroupSpec, Partitions, str, int]]:
    """Share groups in all their states with the partitions that are initialized, and what they are given."""
    random = Random("share groups")
    for _ in range(CASES):
        group = Group(random)
        assignable: dict[bytes, set[int]] = {}
        for _ in range(CHANGES):
            spec = group.spec()
            for topic, count in group.topics.items():  # partitions are initialized one after the other
                initialized = {index for index in range(count) if random.random() < 0.7}
                assignable.setdefault(topic, set()).update(initialized)
            group.assigned, pauses = counted(assign_simply(spec, assignable))
            yield spec, assignable, text_of(group.assigned), pauses
            group.change()
