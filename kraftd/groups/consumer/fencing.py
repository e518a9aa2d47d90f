"""How members of consumer groups go: they leave, or are fenced."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import STATIC_LEAVING_EPOCH, Member
from kraftd.groups.consumer.records import current_record, epoch_record, member_tombstones, regex_tombstone
from kraftd.groups.consumer.subscriptions import topics_without, unused_regexes
from kraftd.groups.migration.downgrade import becomes_classic, downgrade
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.wire.error_code import ErrorCode

# Kinds of deadlines; those of join and sync are for members with the classic protocol.
SESSION, REBALANCE, JOIN, SYNC = "session", "rebalance", "classic join", "classic sync"


def consumer_group(state: ShardState, group_id: str) -> ConsumerGroup:
    """A consumer group; Refusal if there is none."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    reason = "not found" if group is None else "is not a consumer group"
    raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")


# Leaving


def leave(state: ShardState, request: ConsumerGroupHeartbeatRequest) -> Outcome:
    """Remove a member, or note that a static one will be back. Raises Refusal."""
    group = consumer_group(state, request.group_id)
    member = leaving_member(group, request)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVING_EPOCH:
        away = replace(
            member,
            epoch=STATIC_LEAVING_EPOCH,
            revoking={},
            assigned={topic: dict.fromkeys(had, 0) for topic, had in member.assigned.items()},
        )
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=STATIC_LEAVING_EPOCH
        )
        return Outcome([current_record(group.group_id, away)], response)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return fence(state, group, [member], response)


def leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The member that leaves, by its instance id if it has one. Raises Refusal."""
    if request.instance_id is None:
        return group.member(request.member_id)
    return held_by(group, request.instance_id, request.member_id)


def held_by(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """The static member with this member id; Refusal if another one holds the instance id, or none."""
    member = group.static_member(instance_id)
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise Refusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def fence(
    state: ShardState, group: ConsumerGroup, members: Collection[Member], response: Any = None
) -> Outcome:
    """Remove members: the group's epoch rises. If only classic members stay, the group becomes classic."""
    group_id = group.group_id
    if becomes_classic(state, group, members):
        return downgrade(state, group, members, response)
    records = [record for member in members for record in member_tombstones(group_id, member.member_id)]
    unused = unused_regexes(group, members)
    records += [regex_tombstone(group_id, regex) for regex in unused]
    group.changes_hash(state.metadata.hashes_version(), lambda: state.metadata_hash(group.topics))
    metadata_hash = state.metadata_hash(topics_without(group, members, unused))
    records.append(epoch_record(group_id, group.facts.epoch + 1, metadata_hash))
    for member in members:
        for kind in (SESSION, REBALANCE, JOIN, SYNC):
            state.deadlines.cancel((kind, group_id, member.member_id))
    return Outcome(records, response)
