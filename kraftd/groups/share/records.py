"""The records of a share group. Each kind has a key, and a value or none: then it is a tombstone."""

from __future__ import annotations

from kraftd.groups.call import Metadata
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.member import ShareMember, recorded_assignment, recorded_subscription
from kraftd.groups.share.state_partitions import UNKNOWN_NAME, StatePartitions, Topics
from kraftd.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kraftd.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.share_group_metadata_value import ShareGroupMetadataValue
from kraftd.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kraftd.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from kraftd.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kraftd.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kraftd.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kraftd.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)


def subscription_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """What a member says of itself."""
    key = ShareGroupMemberMetadataKey(group_id, member.member_id)
    return CoordinatorRecord(key, recorded_subscription(member))


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """What a member has."""
    key = ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id)
    return CoordinatorRecord(key, recorded_assignment(member))


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The epoch of the group's members and topics."""
    return CoordinatorRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """What a member is to have."""
    rows = [TopicPartition(topic_id, tuple(sorted(indexes))) for topic_id, indexes in partitions.items()]
    key = ShareGroupTargetAssignmentMemberKey(group_id, member_id)
    return CoordinatorRecord(key, ShareGroupTargetAssignmentMemberValue(rows), content=partitions)


def target_epoch_record(group_id: str, epoch: int, computed_ms: int) -> CoordinatorRecord:
    """The group epoch for which the target was computed, and when."""
    key = ShareGroupTargetAssignmentMetadataKey(group_id)
    return CoordinatorRecord(key, ShareGroupTargetAssignmentMetadataValue(epoch, computed_ms))


def state_record(group_id: str, known: StatePartitions, metadata: Metadata) -> CoordinatorRecord:
    """Which partitions the share coordinator knows."""
    deleting = [
        TopicInfo(topic_id, metadata.topic_name(topic_id) or UNKNOWN_NAME) for topic_id in known.deleting
    ]
    value = ShareGroupStatePartitionMetadataValue(
        _partitions(known.initializing), _partitions(known.initialized), deleting
    )
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id), value)


def _partitions(topics: Topics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id, one.name, tuple(sorted(one.indexes)))
        for topic_id, one in topics.items()
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Remove a member: what it has, what it was to have, itself."""
    return [
        CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id), None),
        CoordinatorRecord(ShareGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """Remove a group without members."""
    return [
        CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id), None),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id), None),
        CoordinatorRecord(ShareGroupMetadataKey(group_id), None),
    ]
