"""The target of a share group: what the assignor makes of the members and the initialized partitions."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kraftd.ground.java_hashes import hash_map_order
from kraftd.groups.call import Metadata
from kraftd.groups.consumer.assignors.spec import (
    MEMBERS_A_SLICE,
    NOTHING,
    Assigned,
    GroupSpec,
    MemberSpec,
    Slices,
)
from kraftd.groups.consumer.target import SubscribedTopics
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.assignor import assign_simply
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.member import ShareMember
from kraftd.groups.share.records import target_epoch_record, target_record


class SharePlan(Struct, frozen=True):
    """What a target is computed of: the group's members, with one of them new or changed."""

    group: ShareGroup
    epoch: int
    is_homogeneous: bool
    metadata: Metadata
    changed: ShareMember | None = None

    def compute(self) -> Slices[Assigned]:
        """The partitions of each member, slice by slice. A new one is in Kafka's table before its record."""
        changed = {} if self.changed is None else {self.changed.member_id: self.changed}
        members = self.group.members | changed
        ids = hash_map_order(self.group.member_ids(*changed))
        topics = SubscribedTopics({}, self.metadata)
        specs: dict[str, MemberSpec] = {}
        for number, member_id in enumerate(ids, 1):
            topic_ids = yield from topics.of(members[member_id])
            specs[member_id] = MemberSpec(None, topic_ids, self.group.target(member_id))
            if number % MEMBERS_A_SLICE == 0:
                yield
        assignable = {topic_id: one.indexes for topic_id, one in self.group.known().initialized.items()}
        spec = GroupSpec(specs, self.is_homogeneous, (yield from topics.partition_counts()))
        assigned = yield from assign_simply(spec, assignable)
        return {member_id: assigned.get(member_id, NOTHING) for member_id in specs}

    def records(self, assigned: Assigned, computed_ms: int) -> Iterator[CoordinatorRecord]:
        """The records of the targets that have changed; that of the epoch is the last."""
        group = self.group
        for member_id, partitions in assigned.items():
            if group.targets.get(member_id) != partitions:
                yield target_record(group.group_id, member_id, partitions)
        yield target_epoch_record(group.group_id, self.epoch, computed_ms)
