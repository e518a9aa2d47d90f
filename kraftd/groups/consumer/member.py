"""A member of a consumer group, as its records have it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_current_member_assignment_value import (
    TopicPartitions as RecordedPartitions,
)
from kraftd.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)

# Of a topic, and of a partition of it, in the record of what a member has.
TOPIC_BYTES, PARTITION_BYTES = 21, 8
COPIES_A_US = 50  # partitions that are copied in a microsecond
JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2  # a static member that will be back

# Partitions with the member epoch in which each was assigned, by topic id.
Epochs = Mapping[bytes, Mapping[int, int]]


class MemberState(Enum):
    """How far a member is on its way to its target.

    UNKNOWN is a state of a newer release, in records that it has written.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_STATES = {state.value: state for state in MemberState}


def state_of(value: int) -> MemberState:
    """The state that a record has by its number."""
    return _STATES.get(value, MemberState.UNKNOWN)


class Member(Struct, frozen=True, gc=False):
    """A member: what it says of itself, and what it has.

    topics: the names to which it is subscribed. regex: the pattern of further ones. assigned: what it may
    read. revoking: what it still has and must give up. classic: of a member that speaks the classic protocol.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    assigned: Epochs = {}
    revoking: Epochs = {}
    classic: ClassicMemberMetadata | None = None

    def __repr__(self) -> str:
        size = count(self.assigned)
        return f"<Member {self.member_id} {self.state.name} epoch {self.epoch}, {size} partitions>"

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has all of its target of that epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def assignment_epoch(self, topic_id: bytes, index: int) -> int | None:
        """When a partition was assigned to the member; None if it does not have it."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(index)
            if epoch is not None:
                return epoch
        return None


def count(partitions: Epochs) -> int:
    """How many partitions there are."""
    return sum(map(len, partitions.values()))


def assignment_bytes(topics: int, partitions: int) -> int:
    """What these many partitions of these many topics take of a member's record, which has a little more."""
    return topics * TOPIC_BYTES + partitions * PARTITION_BYTES


def recorded_subscription(member: Member) -> ConsumerGroupMemberMetadataValue:
    """What a member says of itself, as its record has it."""
    return ConsumerGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.regex,
        member.rebalance_timeout_ms,
        member.assignor,
        member.classic,
    )


@Sliced
def recorded_assignment(member: Member) -> Slices[ConsumerGroupCurrentMemberAssignmentValue]:
    """What a member has, as its record has it."""
    assigned = yield from _recorded(member.assigned)
    revoking = yield from _recorded(member.revoking)
    return ConsumerGroupCurrentMemberAssignmentValue(
        member.epoch, member.previous_epoch, member.state.value, assigned, revoking
    )


def with_subscription(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    """The member after a record of what it says of itself."""
    return Member(
        member.member_id,
        member.epoch,
        member.previous_epoch,
        member.state,
        value.instance_id,
        value.rack_id,
        value.rebalance_timeout_ms,
        value.client_id,
        value.client_host,
        frozenset(value.subscribed_topic_names),
        value.subscribed_topic_regex,
        value.server_assignor,
        member.assigned,
        member.revoking,
        value.classic_member_metadata,
    )


def with_assignment(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    """The member after a record of what it has."""
    default = max(value.member_epoch, 0)  # of records before there were epochs of partitions
    return Member(
        member.member_id,
        value.member_epoch,
        value.previous_member_epoch,
        state_of(value.state),
        member.instance_id,
        member.rack_id,
        member.rebalance_timeout_ms,
        member.client_id,
        member.client_host,
        member.topics,
        member.regex,
        member.assignor,
        _epochs(value.assigned_partitions, default),
        _epochs(value.partitions_pending_revocation, default),
        member.classic,
    )


def with_step(member: Member, stepped: Member) -> Member:
    """The member with what another one like it has."""
    return replace(
        member,
        epoch=stepped.epoch,
        previous_epoch=stepped.previous_epoch,
        state=stepped.state,
        assigned=stepped.assigned,
        revoking=stepped.revoking,
    )


def _recorded(partitions: Epochs) -> Slices[list[RecordedPartitions]]:
    recorded: list[RecordedPartitions] = []
    pace = Pace()
    for topic_id, epochs in partitions.items():
        indexes = tuple(epochs)
        if pace.spent(len(epochs) // COPIES_A_US):
            yield
        recorded.append(RecordedPartitions(topic_id, indexes, tuple(epochs.values())))
        if pace.spent(len(epochs) // COPIES_A_US):
            yield
    return recorded


def _epochs(topics: list[RecordedPartitions], default: int) -> dict[bytes, dict[int, int]]:
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (default,) * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found
