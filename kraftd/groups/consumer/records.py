"""The records of a consumer group. Each kind has a key, and a value or none: then it is a tombstone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.consumer.member import Member, recorded_assignment, recorded_subscription
from kraftd.groups.records import CoordinatorRecord
from kraftd.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraftd.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kraftd.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kraftd.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kraftd.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kraftd.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kraftd.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraftd.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

_MemberKey = (
    ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupMemberMetadataKey
)
_OF_MEMBER: tuple[type[_MemberKey], type[_MemberKey], type[_MemberKey]] = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupMemberMetadataKey,
)


class Resolved(Struct, frozen=True):
    """The topics that match a pattern; image_version: of the metadata that was looked through."""

    topics: frozenset[str]
    image_version: int
    resolved_ms: int


def subscription_record(group_id: str, member: Member) -> CoordinatorRecord:
    """What a member says of itself."""
    key = ConsumerGroupMemberMetadataKey(group_id, member.member_id)
    return CoordinatorRecord(key, recorded_subscription(member))


def current_record(
    group_id: str,
    member: Member,
    value: ConsumerGroupCurrentMemberAssignmentValue | None = None,
    encoded: bytes | None = None,
) -> CoordinatorRecord:
    """How far a member is, and what it has; with its value and the bytes of it, if they were made before."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id)
    value = recorded_assignment(member) if value is None else value
    return CoordinatorRecord(key, value, content=member, encoded=encoded)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The epoch of the group's members and topics."""
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash)
    )


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """What a member is to have."""
    rows = [TopicPartition(topic_id, tuple(sorted(indexes))) for topic_id, indexes in partitions.items()]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMemberValue(rows), content=partitions)


def target_epoch_record(group_id: str, epoch: int, computed_ms: int) -> CoordinatorRecord:
    """The group epoch for which the target was computed, and when."""
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id)
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMetadataValue(epoch, computed_ms))


def regex_record(group_id: str, regex: str, resolved: Resolved) -> CoordinatorRecord:
    """The topics that match a pattern."""
    value = ConsumerGroupRegularExpressionValue(
        tuple(sorted(resolved.topics)), resolved.image_version, resolved.resolved_ms
    )
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Removes what releases before 4.1 kept of topics."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Remove a member: what it has, what it was to have, itself."""
    return [tombstone for kind in _OF_MEMBER for tombstone in _of_members(kind, group_id, [member_id])]


def _of_members(
    kind: type[_MemberKey], group_id: str, member_ids: Iterable[str]
) -> Iterable[CoordinatorRecord]:
    return (CoordinatorRecord(kind(group_id, member_id), None) for member_id in member_ids)


def group_tombstones(
    group_id: str, regexes: Iterable[str], member_ids: Collection[str] = ()
) -> list[CoordinatorRecord]:
    """Remove a group, with its members if it has some: kind by kind, as Kafka does."""
    current, target, subscription = _OF_MEMBER
    return [
        *_of_members(current, group_id, member_ids),
        *_of_members(target, group_id, member_ids),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *_of_members(subscription, group_id, member_ids),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id), None),
    ]
