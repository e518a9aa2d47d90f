"""How members of share groups go: they leave, or are silent for too long."""

from __future__ import annotations

from functools import partial
from typing import Any

from kraftd.groups.modern_group import names_after
from kraftd.groups.outcome import Outcome
from kraftd.groups.share.group import ShareGroup, share_group
from kraftd.groups.share.member import ShareMember
from kraftd.groups.share.records import epoch_record, member_tombstones
from kraftd.groups.share.settings import session_timeout_ms
from kraftd.groups.state import ShardState
from kraftd.groups.trying_again import again_if_failed
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse

SESSION = "share session"  # the kind of the deadline


def heard(state: ShardState, group_id: str, member_id: str) -> None:
    """A member gave a sign of life: its session begins anew."""
    timeout_ms = session_timeout_ms(state.config, state.metadata.group_configs(group_id))
    key = SESSION, group_id, member_id
    state.deadlines.schedule(key, state.now_ms + timeout_ms, partial(expire, state, key))


def watch(state: ShardState, group: ShareGroup) -> None:
    """Watch the members of a group that was loaded: each gets a whole session timeout."""
    for member_id in group.members:
        heard(state, group.group_id, member_id)


def expire(state: ShardState, key: tuple[str, str, str]) -> Outcome:
    """Fence a member that was silent for too long."""
    _, group_id, member_id = key
    group = state.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
    if not isinstance(group, ShareGroup) or member is None:
        return Outcome()
    return fence(state, group, member)


def leave(state: ShardState, request: ShareGroupHeartbeatRequest) -> Outcome:
    """Remove a member that says goodbye. Raises Refusal."""
    group = share_group(state.groups, request.group_id)
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return fence(state, group, group.member(request.member_id), response)


def fence(state: ShardState, group: ShareGroup, member: ShareMember, response: Any = None) -> Outcome:
    """Remove a member: the group's epoch rises.

    If that is not written, the member goes soon, unless it is heard: nothing else would end its session.
    """
    key = SESSION, group.group_id, member.member_id
    records = member_tombstones(group.group_id, member.member_id)
    metadata_hash = state.metadata_hash(names_after(group.topics, member, None))
    records.append(epoch_record(group.group_id, group.facts.epoch + 1, metadata_hash))
    state.deadlines.cancel(key)
    return again_if_failed(state, key, partial(expire, state, key), Outcome(records, response))
