"""Answers to members of classic groups."""

from __future__ import annotations

from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.member import ClassicMember
from kraftd.groups.state import ShardState
from kraftd.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode

UNKNOWN_MEMBER_ID = ""


def joined(group: ClassicGroup, member_id: str, *, with_members: bool | None = None) -> JoinGroupResponse:
    """A member's answer in the current generation; the leader's names all members unless overruled."""
    is_leader = group.is_leader(member_id) if with_members is None else with_members
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=members_of(group) if is_leader else [],
    )


def members_of(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """The members as the leader sees them."""
    return [
        JoinGroupResponseMember(
            member.member_id, member.instance_id, member.metadata(group.protocol_name) or b""
        )
        for member in group.members.values()
    ]


def join_refused(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def answer_join(
    state: ShardState, group: ClassicGroup, member: ClassicMember, answer: JoinGroupResponse
) -> None:
    """Answer the JoinGroup in which a member waits, if it does."""
    call = member.awaiting_join
    if call is not None:
        member.awaiting_join = None
        if group.members.get(member.member_id) is member:
            group.joining_count -= 1
        state.respond(call, answer)


def answer_sync(state: ShardState, member: ClassicMember, answer: SyncGroupResponse) -> bool:
    """Answer the SyncGroup in which a member waits.

    Return whether it waits in one.
    """
    call = member.awaiting_sync
    if call is None:
        return False
    member.awaiting_sync = None
    state.respond(call, answer)
    return True
