"""Voters and observers as one replica sees them, for operators."""

from __future__ import annotations

from msgspec import Struct

from kraftd.raft.quorum.progress import ReplicaProgress
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader
from kraftd.types import ReplicaKey


class ReplicaView(Struct, frozen=True):
    """A voter or an observer. Offset and times (ms) are None where this replica does not know them.

    A leader sees every replica that fetches from it. Any other replica sees the voters, and its own log.
    `behind_since_ms` is when the leader last saw the replica caught up, or else its own election. `is_short`
    while the replica holds less than it had acknowledged to this leader.
    """

    key: ReplicaKey
    is_voter: bool
    is_leader: bool
    end_offset: int | None = None
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    behind_since_ms: int | None = None
    is_short: bool = False


def replica_views(replica: Replica, now_ms: int) -> list[ReplicaView]:
    """The voters by id, then the observers by id."""
    leader, own_id = replica.role, replica.config.node_id
    own_end = replica.log.end_offset
    if not isinstance(leader, Leader):
        leader_id, ends = replica.leader_id_or_none, {own_id: own_end}
        keys = [voter.key for voter in replica.voters]
        return [ReplicaView(key, True, key.id == leader_id, ends.get(key.id)) for key in keys]
    since_ms = leader.since_ms
    views = [_view(one, True, since_ms) for one in sorted(leader.progress.voters.values(), key=_id)]
    views += [_view(one, False, since_ms) for one in sorted(leader.progress.observers.values(), key=_id)]
    own = ReplicaView(replica.config.key, True, True, own_end, now_ms, now_ms, now_ms)
    return [own if one.is_voter and one.key.id == own_id else one for one in views]


def _id(progress: ReplicaProgress) -> int:
    return progress.key.id


def _view(progress: ReplicaProgress, is_voter: bool, since_ms: int) -> ReplicaView:
    fetched_ms = progress.last_fetch_ms if progress.last_fetch_ms >= 0 else None
    caught_up_ms = progress.last_caught_up_ms if progress.last_caught_up_ms >= 0 else None
    behind_since_ms = max(progress.last_caught_up_ms, since_ms)
    return ReplicaView(
        progress.key,
        is_voter,
        False,
        progress.end_offset,
        fetched_ms,
        caught_up_ms,
        behind_since_ms,
        progress.is_short,
    )
