"""Heartbeats that repeat the last one of their member, while nothing has changed that they depend on.

Most heartbeats are such: then a member is known to live, and gets the answer that it had. `Call.again` does
that. It is for callers that everything is allowed to, and that send the same request again.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.groups.call import Call
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.rebalance import session_of as session_of_classic
from kraftd.groups.classic.states import STABLE
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.sessions import session_of
from kraftd.groups.consumer.settings import session_timeout_ms
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.shard import ShardStatus
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

Repetition = Callable[[int], bool]  # at a time; returns whether the answer is the same


class Again:
    """Takes a heartbeat again, at a time; returns False if it may be answered otherwise now."""

    __slots__ = ("_levels", "_repetition", "_shard", "_shards")

    def __init__(self, shards: GroupShards, shard: GroupShard, repetition: Repetition) -> None:
        self._shards = shards
        self._shard = shard
        self._repetition = repetition
        self._levels = shards.partition_count, shards.group_version

    def __repr__(self) -> str:
        return f"<Again in {self._shard!r}>"

    def __call__(self, now_ms: int) -> bool:
        shards, shard = self._shards, self._shard
        if shard.status is not ShardStatus.ACTIVE:  # nor is a shard that has given place to another
            return False
        if (shards.partition_count, shards.group_version) != self._levels:
            return False
        state = shard.state
        if shard.batches.next_offset > state.timeline.committed:
            return False  # answers wait for what is not committed yet
        return self._repetition(now_ms)


def offer_again(
    shards: GroupShards, call: Call, group_id: str, now_ms: int, repetition: Repetition | None
) -> None:
    """Let the sender's same request be answered by a repetition."""
    if repetition is not None:
        call.again = Again(shards, shards.shard_of(group_id, now_ms), repetition)


def repetition_of_classic(
    state: ShardState, group_id: str, member_id: str, instance_id: str | None
) -> Repetition | None:
    """That of a member whose session has just begun anew; None in a group that rebalances."""
    group = state.classic_group(group_id)
    if group is None or group.state is not STABLE:
        return None
    member, generation = group.members[member_id], group.generation
    key, end = session_of_classic(state, group_id, member_id)

    def repeat(now_ms: int) -> bool:
        is_stable = group.state is STABLE and group.generation == generation
        if not is_stable or state.groups.get(group_id) is not group:
            return False
        if group.members.get(member_id) is not member:
            return False
        if instance_id is not None and not holds(group, instance_id, member_id):
            return False
        state.deadlines.schedule(key, now_ms + member.session_timeout_ms, end)
        return True

    return repeat


def repetition_of_commit(
    state: ShardState, group_id: str, member_id: str, instance_id: str | None
) -> Repetition | None:
    """That of a member that has just committed: it may again while it is the same, whatever the offsets."""
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return repetition_of_classic(state, group_id, member_id, instance_id)
    member = group.member(member_id)
    return lambda now_ms: state.groups.get(group_id) is group and group.members.get(member_id) is member


def repetition(
    state: ShardState, group: ConsumerGroup, member: Member, request: ConsumerGroupHeartbeatRequest
) -> Repetition | None:
    """That of a member that a heartbeat did not change; None while there is more to do for the member.

    The answer has no assignment. A change of the metadata ends it: of topics, or of the group's configs.
    """
    facts, group_id, instance_id = group.facts, group.group_id, request.instance_id
    member_id, hashes_version = member.member_id, state.metadata.hashes_version()
    if group.needs_refresh(hashes_version):
        return None
    if facts.epoch != facts.target_epoch or not member.is_reconciled_to(facts.target_epoch) or group.regexes:
        return None
    timeout_ms = session_timeout_ms(state.config, state.metadata.group_configs(group_id))
    key, end = session_of(state, group_id, member_id)

    def repeat(now_ms: int) -> bool:
        if state.groups.get(group_id) is not group or group.facts is not facts or group.regexes:
            return False
        if group.members.get(member_id) is not member or state.metadata.hashes_version() != hashes_version:
            return False
        if instance_id is not None and not holds(group, instance_id, member_id):
            return False
        state.deadlines.schedule(key, now_ms + timeout_ms, end)
        return True

    return repeat


def holds(group: ClassicGroup | ConsumerGroup, instance_id: str, member_id: str) -> bool:
    """Return whether a member still has the instance id with which it sends heartbeats."""
    return group.static_members.get(instance_id) == member_id
