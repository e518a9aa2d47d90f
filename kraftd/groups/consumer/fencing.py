"""Members that leave, and those that are fenced: silent for too long, or slow to give up partitions."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import STATIC_LEAVING_EPOCH, Member, MemberState
from kraftd.groups.consumer.records import current_record, epoch_record, member_tombstones, regex_tombstone
from kraftd.groups.consumer.settings import session_timeout_ms
from kraftd.groups.consumer.subscriptions import topics_without, unused_regexes
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.wire.error_code import ErrorCode

SESSION, REBALANCE = "session", "rebalance"  # kinds of deadlines


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
    return Outcome(fence(state, group, [member]), response)


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


def fence(state: ShardState, group: ConsumerGroup, members: Collection[Member]) -> list[CoordinatorRecord]:
    """The records that remove members and raise the group's epoch; their deadlines are cancelled."""
    group_id = group.group_id
    records = [record for member in members for record in member_tombstones(group_id, member.member_id)]
    unused = unused_regexes(group, members)
    records += [regex_tombstone(group_id, regex) for regex in unused]
    metadata_hash = state.metadata_hash(topics_without(group, members, unused))
    records.append(epoch_record(group_id, group.facts.epoch + 1, metadata_hash))
    for member in members:
        forget(state, group_id, member.member_id)
    return records


# Deadlines


def heard(state: ShardState, group_id: str, member_id: str) -> None:
    """A member gave a sign of life: its session begins anew."""
    due_ms = state.now_ms + session_timeout_ms(state.config, state.metadata.group_configs(group_id))
    action = partial(expire_session, state, group_id, member_id)
    state.deadlines.schedule((SESSION, group_id, member_id), due_ms, action)


def await_revocation(state: ShardState, group_id: str, member: Member) -> None:
    """A member that has to give up partitions has its rebalance timeout for that; others have no deadline."""
    key = REBALANCE, group_id, member.member_id
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        action = partial(expire_revocation, state, group_id, member.member_id, member.epoch)
        state.deadlines.schedule(key, state.now_ms + member.rebalance_timeout_ms, action)
    else:
        state.deadlines.cancel(key)


def watch(state: ShardState, group: ConsumerGroup) -> None:
    """Watch the members of a group that was loaded: each gets whole timeouts."""
    for member in group.members.values():
        heard(state, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            await_revocation(state, group.group_id, member)


def forget(state: ShardState, group_id: str, member_id: str) -> None:
    state.deadlines.cancel((SESSION, group_id, member_id))
    state.deadlines.cancel((REBALANCE, group_id, member_id))


def expire_session(state: ShardState, group_id: str, member_id: str) -> Outcome:
    """Fence a member that was silent for its session timeout."""
    group = state.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None:
        return Outcome()
    return Outcome(fence(state, group, [member]))


def expire_revocation(state: ShardState, group_id: str, member_id: str, epoch: int) -> Outcome:
    """Fence a member that is still in the epoch in which it was to give up partitions."""
    group = state.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or member.epoch != epoch:
        return Outcome()
    return Outcome(fence(state, group, [member]))
