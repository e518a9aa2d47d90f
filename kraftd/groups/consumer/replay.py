"""What each record of a consumer group does, be it loaded or just written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import (
    LEAVING_EPOCH,
    Member,
    MemberState,
    with_assignment,
    with_step,
    with_subscription,
)
from kraftd.groups.consumer.records import Resolved
from kraftd.groups.records import UnreadableRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraftd.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kraftd.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from kraftd.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kraftd.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kraftd.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kraftd.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraftd.wire.message import Message

Replay = Callable[[ShardState, Any, Any, int, int], None]
OfGroup = Callable[[ConsumerGroup, Any, Any], None]


def replay_epoch(
    state: ShardState,
    key: ConsumerGroupMetadataKey,
    value: ConsumerGroupMetadataValue | None,
    offset: int,
    producer_id: int,
) -> None:
    """Set the group's epoch; without a value, remove the group."""
    if value is not None:
        written_group(state, key.group_id).set_facts(epoch=value.epoch, metadata_hash=value.metadata_hash)
    elif isinstance(state.groups.get(key.group_id), ConsumerGroup):
        state.timeline.remove(state.groups, key.group_id)


def replay_partition_metadata(
    group: ConsumerGroup,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.set_facts(has_partition_metadata=value is not None)


def replay_subscription(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        member = group.members.get(key.member_id) or Member(key.member_id)
        group.put(with_subscription(member, value))


def replay_current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | Member | None,
) -> None:
    """Set what a member has; without a value, it has left."""
    member = group.members.get(key.member_id)
    if isinstance(value, Member):
        group.put(with_step(member or Member(key.member_id), value))
    elif value is not None:
        group.put(with_assignment(member or Member(key.member_id), value))
    elif member is not None:
        left = ConsumerGroupCurrentMemberAssignmentValue(
            LEAVING_EPOCH, LEAVING_EPOCH, MemberState.STABLE.value
        )
        group.put(with_assignment(member, left))


def replay_regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = None
    if value is not None:
        resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.set_resolved(key.regular_expression, resolved)


def written_group(state: ShardState, group_id: str) -> ConsumerGroup:
    """The group of a record, which makes it if there is none.

    A group that only had offsets of a simple consumer becomes a consumer group. Raises UnreadableRecord if it
    is of another kind.
    """
    present = state.groups.get(group_id)
    if isinstance(present, ConsumerGroup):
        return present
    is_simple = isinstance(present, ClassicGroup) and present.is_simple()
    if present is not None and not is_simple:
        raise UnreadableRecord(f"a record of consumer group {group_id}, which is {present.type.value}")
    group = ConsumerGroup(group_id, state.timeline)
    state.timeline.put(state.groups, group_id, group)
    return group


def of_group(function: OfGroup) -> Replay:
    """Replay a record that changes a group; a tombstone of a group that is not there changes nothing."""

    def replay(state: ShardState, key: Any, value: Message | None, offset: int, producer_id: int) -> None:
        if value is not None:
            function(written_group(state, key.group_id), key, value)
            return
        group = state.groups.get(key.group_id)
        if isinstance(group, ConsumerGroup):
            function(group, key, None)

    return replay


CONSUMER_REPLAYED: dict[type[Message], Replay] = {
    ConsumerGroupMetadataKey: replay_epoch,
    ConsumerGroupPartitionMetadataKey: of_group(replay_partition_metadata),
    ConsumerGroupMemberMetadataKey: of_group(replay_subscription),
    ConsumerGroupCurrentMemberAssignmentKey: of_group(replay_current),
    ConsumerGroupTargetAssignmentMemberKey: of_group(ConsumerGroup.replay_target),
    ConsumerGroupTargetAssignmentMetadataKey: of_group(ConsumerGroup.replay_target_epoch),
    ConsumerGroupRegularExpressionKey: of_group(replay_regex),
}
