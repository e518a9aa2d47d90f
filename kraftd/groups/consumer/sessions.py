"""The deadlines of members of consumer groups, after which they are fenced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kraftd.groups.consumer.fencing import JOIN, REBALANCE, SESSION, SYNC, fence
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.settings import session_timeout_ms
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.groups.trying_again import again_if_failed

Key = tuple[str, str, str]  # of a deadline: its kind, the group and the member


def heard(state: ShardState, group_id: str, member_id: str) -> None:
    """A member gave a sign of life: its session begins anew."""
    timeout_ms = session_timeout_ms(state.config, state.metadata.group_configs(group_id))
    watch_session(state, group_id, member_id, timeout_ms)


def watch_session(state: ShardState, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Expect a sign of life within a time."""
    key, end = session_of(state, group_id, member_id)
    state.deadlines.schedule(key, state.now_ms + timeout_ms, end)


def session_of(state: ShardState, group_id: str, member_id: str) -> tuple[Key, Callable[[], Outcome]]:
    """The key of the deadline of a member's session, and how it ends then."""
    key = SESSION, group_id, member_id
    return key, partial(expire, state, key)


def gone_at_last(state: ShardState, group_id: str, member_ids: Iterable[str], outcome: Outcome) -> Outcome:
    """The outcome of members that leave.

    If it is not written, their sessions end soon, unless they are heard: nothing else would end them.
    """
    for member_id in member_ids:
        key, end = session_of(state, group_id, member_id)
        outcome = again_if_failed(state, key, end, outcome)
    return outcome


def await_revocation(state: ShardState, group_id: str, member: Member) -> None:
    """A member that has to give up partitions has its rebalance timeout for that; others have no deadline."""
    key = REBALANCE, group_id, member.member_id
    if member.classic is not None:
        return  # it has deadlines for JoinGroup and SyncGroup
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        watch_revocation(state, key, member)
    else:
        state.deadlines.cancel(key)


def watch_revocation(state: ShardState, key: Key, member: Member) -> None:
    action = partial(expire_revocation, state, key, member.epoch)
    state.deadlines.schedule(key, state.now_ms + member.rebalance_timeout_ms, action)


def await_rejoining(state: ShardState, group_id: str, member: Member) -> None:
    """A classic member is to join again: it has its rebalance timeout for that, from the first notice on."""
    key = JOIN, group_id, member.member_id
    if key not in state.deadlines:
        action = partial(expire, state, key)
        state.deadlines.schedule(key, state.now_ms + member.rebalance_timeout_ms, action)


def await_sync(state: ShardState, group_id: str, member_id: str, timeout_ms: int) -> None:
    """A classic member has joined: SyncGroup is to follow."""
    state.deadlines.cancel((JOIN, group_id, member_id))
    key = SYNC, group_id, member_id
    state.deadlines.schedule(key, state.now_ms + timeout_ms, partial(expire, state, key))


def forget_sync(state: ShardState, group_id: str, member_id: str) -> None:
    state.deadlines.cancel((SYNC, group_id, member_id))


def watch(state: ShardState, group: ConsumerGroup) -> None:
    """Watch the members of a group that was loaded: each gets whole timeouts.

    No record says that a classic member was to join again, so it gets a deadline for what it has to give up.
    """
    for member in group.members.values():
        heard(state, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            watch_revocation(state, (REBALANCE, group.group_id, member.member_id), member)


def expire(state: ShardState, key: Key) -> Outcome:
    """Fence a member that was silent, or did not come, in time."""
    return _fenced(state, key, None, partial(expire, state, key))


def expire_revocation(state: ShardState, key: Key, epoch: int) -> Outcome:
    """Fence a member that is still in the epoch in which it was to give up partitions."""
    return _fenced(state, key, epoch, partial(expire_revocation, state, key, epoch))


def _fenced(state: ShardState, key: Key, epoch: int | None, action: Callable[[], Outcome]) -> Outcome:
    """Fence the member of a deadline, in this epoch if one is given."""
    _, group_id, member_id = key
    group = state.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or epoch not in (None, member.epoch):
        return Outcome()
    return again_if_failed(state, key, action, fence(state, group, [member]))
