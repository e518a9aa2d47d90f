"""What each record of a share group does, be it loaded or just written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.groups.records import UnreadableRecord
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.member import ShareMember, departed, with_assignment, with_subscription
from kraftd.groups.share.state_partitions import Named, StatePartitions
from kraftd.groups.state import ShardState
from kraftd.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kraftd.messages.share_group_current_member_assignment_value import ShareGroupCurrentMemberAssignmentValue
from kraftd.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraftd.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.share_group_metadata_value import ShareGroupMetadataValue
from kraftd.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kraftd.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from kraftd.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kraftd.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kraftd.wire.message import Message

Replay = Callable[[ShardState, Any, Any, int, int], None]
OfGroup = Callable[[ShardState, ShareGroup, Any, Any], None]


def replay_epoch(
    state: ShardState,
    group: ShareGroup,
    key: ShareGroupMetadataKey,
    value: ShareGroupMetadataValue | None,
) -> None:
    """Set the group's epoch; without a value, remove the group."""
    if value is not None:
        group.set_facts(epoch=value.epoch, metadata_hash=value.metadata_hash)
    else:
        state.timeline.remove(state.groups, key.group_id)


def replay_subscription(
    state: ShardState,
    group: ShareGroup,
    key: ShareGroupMemberMetadataKey,
    value: ShareGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        member = group.members.get(key.member_id) or ShareMember(key.member_id)
        group.put(with_subscription(member, value))


def replay_current(
    state: ShardState,
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Set what a member has; without a value, it has left."""
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(with_assignment(member or ShareMember(key.member_id), value))
    elif member is not None:
        group.put(departed(member))


def replay_state(
    state: ShardState,
    group: ShareGroup,
    key: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
) -> None:
    if value is None:
        group.set_state(None)
        return
    deleting = frozenset(topic.topic_id for topic in value.deleting_topics)
    group.set_state(
        StatePartitions(
            _topics(value.initializing_topics), _topics(value.initialized_topics), deleting, state.now_ms
        )
    )


def _topics(rows: list[TopicPartitionsInfo]) -> dict[bytes, Named]:
    return {row.topic_id: Named(row.topic_name, frozenset(row.partitions)) for row in rows}


def written_group(state: ShardState, group_id: str) -> ShareGroup:
    """The group of a record, which makes it if there is none.

    Raises UnreadableRecord if it is of another kind.
    """
    present = state.groups.get(group_id)
    if isinstance(present, ShareGroup):
        return present
    if present is not None:
        raise UnreadableRecord(f"a record of share group {group_id}, which is {present.type.value}")
    group = ShareGroup(group_id, state.timeline)
    state.timeline.put(state.groups, group_id, group)
    return group


def of_group(function: OfGroup) -> Replay:
    """Replay a record that changes a group; a tombstone of a group that is not there changes nothing."""

    def replay(state: ShardState, key: Any, value: Message | None, offset: int, producer_id: int) -> None:
        if value is not None:
            function(state, written_group(state, key.group_id), key, value)
            return
        group = state.groups.get(key.group_id)
        if isinstance(group, ShareGroup):
            function(state, group, key, None)

    return replay


SHARE_REPLAYED: dict[type[Message], Replay] = {
    ShareGroupMetadataKey: of_group(replay_epoch),
    ShareGroupMemberMetadataKey: of_group(replay_subscription),
    ShareGroupCurrentMemberAssignmentKey: of_group(replay_current),
    ShareGroupTargetAssignmentMemberKey: of_group(
        lambda _, group, key, value: group.replay_target(key, value)
    ),
    ShareGroupTargetAssignmentMetadataKey: of_group(
        lambda _, group, key, value: group.replay_target_epoch(key, value)
    ),
    ShareGroupStatePartitionMetadataKey: of_group(replay_state),
}
