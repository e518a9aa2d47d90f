"""SyncGroup, Heartbeat, LeaveGroup and DescribeGroups of classic groups."""

from __future__ import annotations

from functools import partial

from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.classic.answers import UNKNOWN_MEMBER_ID, answer_join, answer_sync, join_refused
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.rebalance import (
    HEARTBEAT,
    NOTHING,
    SYNC,
    complete_if_all_joined,
    heard,
    rebalance_or_complete,
    reset_assignments,
)
from kraftd.groups.classic.states import COMPLETING_REBALANCE, DEAD, PREPARING_REBALANCE, STABLE
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.migration.classic_members import (
    heartbeat_of_classic_member,
    leave_of_members,
    sync_of_classic_member,
)
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.describe_groups_response import DescribedGroup
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode

DESCRIBE_NOT_FOUND_VERSION = 6  # KIP-1043


# SyncGroup


def sync(state: ShardState, call: Call, request: SyncGroupRequest) -> Outcome:
    """Answer a member with its assignment, or keep the call until the leader has sent it."""
    present = state.groups.get(request.group_id)
    if isinstance(present, ConsumerGroup) and not present.is_empty():
        return sync_of_classic_member(state, present, request)
    group = state.classic_group(request.group_id)
    if group is None or group.is_empty():
        error: ErrorCode | None = ErrorCode.UNKNOWN_MEMBER_ID
    elif group.state is DEAD:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    else:
        error = sync_error(group, request)
    if group is None or error is not None:
        state.respond(call, SyncGroupResponse(error_code=error or ErrorCode.UNKNOWN_MEMBER_ID))
        return NOTHING
    if group.state is PREPARING_REBALANCE:
        state.respond(call, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return NOTHING
    member = group.members[request.member_id]
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        state.deadlines.cancel((SYNC, group.group_id))
    if group.state is STABLE:
        state.respond(call, synced(group, member.assignment))
        return NOTHING
    member.awaiting_sync = call
    if not group.is_leader(member.member_id):
        return NOTHING
    assignment = {row.member_id: row.assignment for row in request.assignments}
    after = partial(end_sync, state, group, request.generation_id, assignment)
    return Outcome([group.record(assignment)], replayed=False, after=after)


def sync_error(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    """Why a SyncGroup is refused, if it is: the member, its generation, its protocol."""
    try:
        group.check_member(request.member_id, request.group_instance_id)
    except Refusal as error:
        return error.code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    pairs = ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name))
    if any(given is not None and known is not None and given != known for given, known in pairs):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def end_sync(
    state: ShardState,
    group: ClassicGroup,
    generation: int,
    assignment: dict[str, bytes],
    error: ErrorCode | None,
) -> Outcome | None:
    """The leader's assignment is committed: members get theirs. If it is not, they rebalance."""
    if group.state is not COMPLETING_REBALANCE or group.generation != generation:
        return None  # another rebalance has begun meanwhile
    if error is not None:
        reset_assignments(state, group, answer_to_failed_append(error))
        return rebalance_or_complete(state, group)
    for member in group.members.values():
        member.assignment = assignment.get(member.member_id, b"")
        if answer_sync(state, member, synced(group, member.assignment)):
            heard(state, group, member)
    group.transition_to(STABLE, state.now_ms)
    state.counts.completed_rebalances += 1
    return None


# Heartbeat


def heartbeat(state: ShardState, request: HeartbeatRequest) -> HeartbeatResponse:
    """A member lives; it is answered whether its group rebalances. Raises Refusal."""
    present = state.groups.get(request.group_id)
    if isinstance(present, ConsumerGroup):
        return heartbeat_of_classic_member(state, present, request)
    group = state.classic_group(request.group_id)
    if group is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is DEAD:
        raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    heard(state, group, group.members[request.member_id])
    if group.state is PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


# LeaveGroup


def leave(state: ShardState, request: LeaveGroupRequest) -> Outcome:
    """Remove members, several from version 3 on (KIP-345). Raises Refusal if there is no such group."""
    present = state.groups.get(request.group_id)
    if isinstance(present, ConsumerGroup):
        return leave_of_members(state, present, request)
    group = state.classic_group(request.group_id)
    if group is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is DEAD:
        return Outcome(response=LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
    rows = [leave_one(state, group, member) for member in request.members]
    outcome = NOTHING
    if any(row.error_code == ErrorCode.NONE for row in rows):
        if group.state in (STABLE, COMPLETING_REBALANCE):
            outcome = rebalance_or_complete(state, group)
        else:
            outcome = complete_if_all_joined(state, group)
    return Outcome(
        outcome.records,
        LeaveGroupResponse(members=rows),
        outcome.replayed,
        outcome.after,
    )


def leave_one(state: ShardState, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
    """Remove one member, which an operator names by its instance id alone."""
    row = MemberResponse(identity.member_id, identity.group_instance_id)
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID:
        holder = None if instance_id is None else group.static_members.get(instance_id)
        if holder is None:
            row.error_code = ErrorCode.UNKNOWN_MEMBER_ID
            return row
        member_id = holder
    elif member_id in group.pending_join:
        group.remove(member_id)
        state.deadlines.cancel((HEARTBEAT, group.group_id, member_id))
        return row
    else:
        try:
            group.check_member(member_id, instance_id)
        except Refusal as error:
            row.error_code = error.code
            return row
    state.deadlines.cancel((HEARTBEAT, group.group_id, member_id))
    gone = join_refused(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID)
    answer_join(state, group, group.members[member_id], gone)
    group.remove(member_id)
    return row


# Unloading and describing


def unload(state: ShardState, group: ClassicGroup) -> None:
    """Another node is the coordinator now: members that wait are answered so."""
    was = group.state
    group.release()
    group.transition_to(DEAD, state.now_ms)
    for member in list(group.members.values()):
        if was is PREPARING_REBALANCE:
            answer_join(state, group, member, join_refused(ErrorCode.NOT_COORDINATOR, member.member_id))
        elif was in (COMPLETING_REBALANCE, STABLE):
            answer_sync(state, member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def described(state: ShardState, group_id: str, version: int) -> DescribedGroup:
    """A group in DescribeGroups, as of the high watermark."""
    group = state.timeline.committed_value(state.groups, group_id)
    if not isinstance(group, ClassicGroup):
        row = DescribedGroup(group_id=group_id, group_state=DEAD.value)
        if version >= DESCRIBE_NOT_FOUND_VERSION:
            row.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            reason = "not found" if group is None else "is not a classic group"
            row.error_message = f"Group {group_id} {reason}."
        return row
    is_stable = group.state is STABLE
    protocol = group.protocol_name if is_stable else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[member.described(protocol) for member in group.members.values()],
    )
