"""The target of a group: what its assignor makes of the members and their topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from kraftd.ground.java_hashes import hash_map_order
from kraftd.groups.call import Metadata
from kraftd.groups.consumer.assignors.spec import (
    MEMBERS_A_SLICE,
    NOTHING,
    PARTITIONS_A_SLICE,
    Assigned,
    Assignor,
    GroupSpec,
    MemberSpec,
    Partitions,
    Slices,
    Waits,
)
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import Resolved, target_epoch_record, target_record
from kraftd.groups.records import CoordinatorRecord

TOPICS_A_SLICE = 2000


class Plan(Struct, frozen=True):
    """What a target is computed of: the group's members, with one of them new, changed or in another's place.

    replaced_id: the static member whose place `changed` takes.
    """

    group: ConsumerGroup
    epoch: int
    assignor: Assignor
    is_homogeneous: bool
    metadata: Metadata
    changed: Member | None = None
    replaced_id: str | None = None

    def members(self) -> dict[str, Member]:
        """The members in the order of Kafka's map."""
        members = {member_id: self.group.members[member_id] for member_id in self.group.member_ids()}
        if self.changed is not None:
            members[self.changed.member_id] = self.changed
        if self.replaced_id is not None:
            members.pop(self.replaced_id, None)
        return {member_id: members[member_id] for member_id in hash_map_order(members)}

    def assigned_to(self, member_id: str) -> Partitions:
        if self.replaced_id is not None and self.changed is not None and member_id == self.changed.member_id:
            return self.group.target(self.replaced_id)
        return self.group.target(member_id)

    def compute(self) -> Waits[Assigned]:
        """The partitions of each member, slice by slice."""
        members = self.members()
        yield None
        topics = SubscribedTopics(self.group.resolved, self.metadata)
        specs: dict[str, MemberSpec] = {}
        for number, (member_id, member) in enumerate(members.items(), 1):
            assigned = self.assigned_to(member_id)
            topic_ids = yield from topics.of(member)
            specs[member_id] = MemberSpec(member.instance_id, topic_ids, assigned)
            if number % MEMBERS_A_SLICE == 0:
                yield None
        yield from single_owners(self.group, specs)
        counts = yield from topics.partition_counts()
        spec = GroupSpec(specs, self.is_homogeneous, counts, self.group.group_id)
        assigned_now = yield from self.assignor(spec)
        return {member_id: assigned_now.get(member_id, NOTHING) for member_id in members}

    def records(self, assigned: Assigned, computed_ms: int) -> Iterator[CoordinatorRecord]:
        """The records of the targets that have changed; that of the epoch is the last."""
        group = self.group
        for member_id, partitions in assigned.items():
            if group.targets.get(member_id) != partitions:
                yield target_record(group.group_id, member_id, partitions)
        yield target_epoch_record(group.group_id, self.epoch, computed_ms)


class Subscriber(Protocol):
    """A member with its topics' names, and the pattern of further ones."""

    @property
    def topics(self) -> frozenset[str]: ...
    @property
    def regex(self) -> str | None: ...


class SubscribedTopics:
    """The ids of the topics to which members are subscribed; equal subscriptions are looked up once."""

    def __init__(self, resolved: Mapping[str, Resolved], metadata: Metadata) -> None:
        self._resolved = resolved
        self._metadata = metadata
        self._known: dict[tuple[frozenset[str], str | None], tuple[bytes, ...]] = {}

    def of(self, member: Subscriber) -> Slices[tuple[bytes, ...]]:
        key = member.topics, member.regex
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = yield from self._ids(member)
        return found

    def _ids(self, member: Subscriber) -> Slices[tuple[bytes, ...]]:
        resolved = self._resolved.get(member.regex or "")
        names = member.topics if resolved is None else member.topics | resolved.topics
        found: list[bytes] = []
        for number, name in enumerate((yield from hash_map_order.begin(names)), 1):
            topic_id = self._metadata.topic_id(name)
            if topic_id is not None:
                found.append(topic_id)
            if number % TOPICS_A_SLICE == 0:
                yield
        return tuple(found)

    def partition_counts(self) -> Slices[dict[bytes, int]]:
        """How many partitions each topic has that was looked up."""
        ids = {topic_id for found in self._known.values() for topic_id in found}
        counts: dict[bytes, int] = {}
        for number, topic_id in enumerate(ids, 1):
            counts[topic_id] = self._metadata.partition_count(topic_id)
            if number % TOPICS_A_SLICE == 0:
                yield
        return counts


def single_owners(group: ConsumerGroup, specs: dict[str, MemberSpec]) -> Slices[None]:
    """Leave each partition to one member.

    A target that was written in parts, the last of which is missing, may name two: that which has it stays.
    """
    claims: dict[bytes, set[int]] = {}
    total = paused_at = 0
    for spec in specs.values():
        for topic_id, indexes in spec.assigned.items():
            total += len(indexes)
            claims.setdefault(topic_id, set()).update(indexes)
        if total - paused_at >= PARTITIONS_A_SLICE:
            paused_at = total
            yield
    yield
    if total == sum(map(len, claims.values())):
        return
    seen: set[tuple[bytes, int]] = set()
    by_ownership = sorted(specs, key=lambda member_id: member_id not in group.members)
    for member_id in by_ownership:
        spec = specs[member_id]
        kept: dict[bytes, set[int]] = {}
        for topic_id, indexes in spec.assigned.items():
            for index in indexes:
                place = topic_id, index
                owner = group.owners.owner(topic_id, index) or member_id
                if place not in seen and (owner == member_id or owner not in specs):
                    seen.add(place)
                    kept.setdefault(topic_id, set()).add(index)
        specs[member_id] = MemberSpec(spec.instance_id, spec.topic_ids, kept)
    yield
