"""SyncGroup, Heartbeat and LeaveGroup of members of a consumer group that speak the classic protocol.

Their generation is their member epoch. A heartbeat has them join again when there is a newer target, or
something to give up. It does so too when what they wait for is free.
"""

from __future__ import annotations

from functools import partial

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.fencing import fence, held_by
from kraftd.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.sessions import await_rejoining, forget_sync, gone_at_last, watch_session
from kraftd.groups.migration.embedded import encoded_assignment, version_of
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode


def sync_of_classic_member(state: ShardState, group: ConsumerGroup, request: SyncGroupRequest) -> Outcome:
    """Answer a member with what it has, in the form of its protocol. Raises Refusal."""
    member, classic = classic_member(group, request.member_id, request.group_instance_id)
    check_generation(member, request.generation_id)
    protocol = classic.supported_protocols[0]
    given = (request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, protocol.name)
    if any(name is not None and name != known for name, known in given):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.facts.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        await_rejoining(state, group.group_id, member)
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
    assignment = encoded_assignment(member.assigned, state.metadata, version_of(protocol.metadata))
    response = SyncGroupResponse(
        protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
    )
    after = partial(synced, state, group.group_id, member.member_id, classic.session_timeout_ms)
    return Outcome(response=response, after=after)


def synced(
    state: ShardState, group_id: str, member_id: str, session_timeout_ms: int, error: ErrorCode | None
) -> None:
    if error is None:
        forget_sync(state, group_id, member_id)
        watch_session(state, group_id, member_id, session_timeout_ms)


def heartbeat_of_classic_member(
    state: ShardState, group: ConsumerGroup, request: HeartbeatRequest
) -> HeartbeatResponse:
    """A member lives; it is answered whether it is to join again. Raises Refusal."""
    member, classic = classic_member(group, request.member_id, request.group_instance_id)
    check_generation(member, request.generation_id)
    watch_session(state, group.group_id, member.member_id, classic.session_timeout_ms)
    if (
        member.epoch < group.facts.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not waits_for_others(group, member))
    ):
        await_rejoining(state, group.group_id, member)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Return whether another member still has some of the member's target."""
    return any(
        index not in member.assigned.get(topic_id, {}) and group.owners.owner(topic_id, index) is not None
        for topic_id, indexes in group.target(member.member_id).items()
        for index in indexes
    )


def leave_of_members(state: ShardState, group: ConsumerGroup, request: LeaveGroupRequest) -> Outcome:
    """Remove members of either protocol that LeaveGroup names."""
    rows: list[MemberResponse] = []
    leaving: dict[str, Member] = {}
    for identity in request.members:
        row = MemberResponse(identity.member_id, identity.group_instance_id)
        rows.append(row)
        try:
            member = leaving_member(group, identity)
        except Refusal as error:
            row.error_code = error.code
        else:
            leaving[member.member_id] = member
    response = LeaveGroupResponse(members=rows)
    if not leaving:
        return Outcome(response=response)
    fenced = fence(state, group, list(leaving.values()), response)
    return gone_at_last(state, group.group_id, leaving, fenced)


def leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    """The member, which an operator may name by its instance id alone. Raises Refusal."""
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    holder = group.static_member(identity.group_instance_id)
    member_id = identity.member_id or (holder.member_id if holder is not None else "")
    return held_by(group, identity.group_instance_id, member_id)


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[Member, ClassicMemberMetadata]:
    """A member that speaks the classic protocol, with what it said. Raises Refusal."""
    member = group.member(member_id) if instance_id is None else held_by(group, instance_id, member_id)
    if member.classic is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    return member, member.classic


def check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
