"""A member of a share group, as its records have it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kraftd.groups.consumer.assignors.spec import NOTHING, Partitions
from kraftd.groups.consumer.member import MemberState, state_of
from kraftd.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraftd.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue

JOINING_EPOCH = 0
LEAVING_EPOCH = -1


class ShareMember(Struct, frozen=True, gc=False):
    """A member: what it says of itself, and the partitions that it may read.

    topics: the names to which it is subscribed.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Partitions = {}

    def __repr__(self) -> str:
        size = sum(map(len, self.assigned.values()))
        return f"<ShareMember {self.member_id} epoch {self.epoch}, {size} partitions>"

    @property
    def regex(self) -> None:
        """Share groups have no patterns."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has its target of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def recorded_subscription(member: ShareMember) -> ShareGroupMemberMetadataValue:
    """What a member says of itself, as its record has it."""
    return ShareGroupMemberMetadataValue(
        member.rack_id, member.client_id, member.client_host, tuple(sorted(member.topics))
    )


def recorded_assignment(member: ShareMember) -> ShareGroupCurrentMemberAssignmentValue:
    """What a member has, as its record has it."""
    rows = [TopicPartitions(topic_id, tuple(indexes)) for topic_id, indexes in member.assigned.items()]
    return ShareGroupCurrentMemberAssignmentValue(
        member.epoch, member.previous_epoch, member.state.value, rows
    )


def with_subscription(member: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    """The member after a record of what it says of itself."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def with_assignment(member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    """The member after a record of what it has."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=state_of(value.state),
        assigned={row.topic_id: frozenset(row.partitions) for row in value.assigned_partitions},
    )


def departed(member: ShareMember) -> ShareMember:
    """The member once what it had is taken away, because it leaves."""
    return replace(member, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned=NOTHING)
