"""How a rebalance of a classic group begins, waits and ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.groups.classic.answers import UNKNOWN_MEMBER_ID, answer_join, answer_sync, join_refused, joined
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.member import ClassicMember
from kraftd.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode

HEARTBEAT, JOIN, SYNC = "heartbeat", "join", "sync"  # what a deadline of a group is for

NOTHING = Outcome()


def watch(state: ShardState, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Expect a sign of life from a member within a time."""
    key, end = session_of(state, group_id, member_id)
    state.deadlines.schedule(key, state.now_ms + timeout_ms, end)


def session_of(
    state: ShardState, group_id: str, member_id: str
) -> tuple[tuple[str, str, str], Callable[[], Outcome]]:
    """The key of the deadline of a member's session, and how it ends then."""
    return (HEARTBEAT, group_id, member_id), partial(expire_heartbeat, state, group_id, member_id)


def heard(state: ShardState, group: ClassicGroup, member: ClassicMember) -> None:
    """Begin a member's session timeout anew."""
    watch(state, group.group_id, member.member_id, member.session_timeout_ms)


def rebalance_or_complete(state: ShardState, group: ClassicGroup) -> Outcome:
    """Begin a rebalance; if one is being prepared, end it once all have joined."""
    return prepare(state, group) if group.can_rebalance() else complete_if_all_joined(state, group)


def prepare(state: ShardState, group: ClassicGroup) -> Outcome:
    """Begin a rebalance. The first one of a group waits a while for more members (KIP-134)."""
    if group.state is COMPLETING_REBALANCE:
        reset_assignments(state, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    state.deadlines.cancel((SYNC, group.group_id))
    is_first = group.state is EMPTY
    if is_first:
        delay_ms = state.config.group_initial_rebalance_delay_ms
        left_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        schedule_first(state, group.group_id, delay_ms, left_ms)
    group.transition_to(PREPARING_REBALANCE, state.now_ms)
    if is_first:
        return NOTHING
    if group.has_all_joined():
        return complete(state, group)
    schedule_join(state, group)
    return NOTHING


def complete_if_all_joined(state: ShardState, group: ClassicGroup) -> Outcome:
    """End a rebalance that only waits for members; a group's first one waits for its delay as well."""
    if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_joined():
        return complete(state, group)
    return NOTHING


def schedule_first(state: ShardState, group_id: str, delay_ms: int, left_ms: int) -> None:
    action = partial(end_first_delay, state, group_id, delay_ms, left_ms)
    state.deadlines.schedule((JOIN, group_id), state.now_ms + delay_ms, action)


def schedule_join(state: ShardState, group: ClassicGroup) -> None:
    """Wait for members at most as long as the longest of their rebalance timeouts."""
    due_ms = state.now_ms + group.rebalance_timeout_ms()
    state.deadlines.schedule((JOIN, group.group_id), due_ms, partial(end_join, state, group.group_id))


def end_first_delay(state: ShardState, group_id: str, delay_ms: int, left_ms: int) -> Outcome:
    """End a group's first rebalance, or wait on if members came meanwhile and time is left."""
    group = state.classic_group(group_id)
    if group is None:
        return NOTHING
    if group.has_new_members and left_ms != 0:
        group.has_new_members = False
        next_ms = min(state.config.group_initial_rebalance_delay_ms, left_ms)
        schedule_first(state, group_id, next_ms, max(left_ms - delay_ms, 0))
        return NOTHING
    return complete(state, group)


def end_join(state: ShardState, group_id: str) -> Outcome:
    """End a rebalance whose time is over."""
    group = state.classic_group(group_id)
    return NOTHING if group is None else complete(state, group)


def complete(state: ShardState, group: ClassicGroup) -> Outcome:
    """End a rebalance: members that have not rejoined go, the others are answered with the new generation.

    Static members stay although they have not rejoined (KIP-345).
    """
    group_id = group.group_id
    state.deadlines.cancel((JOIN, group_id))
    for member in list(group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            group.remove(member.member_id)
            state.deadlines.cancel((HEARTBEAT, group_id, member.member_id))
    if group.state is not PREPARING_REBALANCE:
        return NOTHING
    if not group.elect_joined_leader() and group.members:
        schedule_join(state, group)
        return NOTHING
    group.begin_generation(state.now_ms)
    if group.state is EMPTY:
        return Outcome([group.record()], replayed=False)
    for member in list(group.members.values()):
        answer_join(state, group, member, joined(group, member.member_id))
        heard(state, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    due_ms = state.now_ms + group.rebalance_timeout_ms()
    action = partial(expire_sync, state, group_id, group.generation)
    state.deadlines.schedule((SYNC, group_id), due_ms, action)
    return NOTHING


def expire_heartbeat(state: ShardState, group_id: str, member_id: str) -> Outcome:
    """Remove a member, or one that was to join, that gave no sign of life in time."""
    group = state.classic_group(group_id)
    if group is None or group.state is DEAD:
        return NOTHING
    if member_id in group.pending_join:
        group.remove(member_id)
        return complete_when_joined(state, group)
    member = group.members.get(member_id)
    if member is None or member.is_waiting():
        return NOTHING
    answer_join(state, group, member, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return rebalance_or_complete(state, group)
    return complete_when_joined(state, group)


def complete_when_joined(state: ShardState, group: ClassicGroup) -> Outcome:
    """End a rebalance that waited for a member that is gone now, be it the first one of the group or not."""
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        return complete(state, group)
    return NOTHING


def expire_sync(state: ShardState, group_id: str, generation: int) -> Outcome:
    """Remove members that have not sent SyncGroup in time, and rebalance."""
    group = state.classic_group(group_id)
    if group is None or group.generation != generation or group.state not in (COMPLETING_REBALANCE, STABLE):
        return NOTHING
    if not group.pending_sync:
        return NOTHING
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        state.deadlines.cancel((HEARTBEAT, group_id, member_id))
    return prepare(state, group)


def reset_assignments(state: ShardState, group: ClassicGroup, error: ErrorCode) -> None:
    """Forget the assignments of a generation that will not complete; refuse members that wait for them."""
    for member in group.members.values():
        member.assignment = b""
        if answer_sync(state, member, SyncGroupResponse(error_code=error)):
            heard(state, group, member)
