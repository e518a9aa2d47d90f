"""Voters and observers for the status page: as this node knows them if it leads, else as the leader does."""

from __future__ import annotations

from msgspec import Struct

from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.metrics.state.readings import Readings
from kraftd.metrics.state.sight import Sight
from kraftd.raft.replica_views import ReplicaView
from kraftd.types import ReplicaKey, uuid_text

MAX_REPLICAS = 200
BEHIND_MS = 10_000  # of a voter; in a healthy quorum it is caught up twice a second


class ReplicaRow(Struct, frozen=True):
    id: int
    directory_id: str | None
    is_voter: bool
    is_leader: bool
    is_self: bool
    end_offset: int | None
    lag: int | None
    fetched_ms_ago: int | None
    caught_up_ms_ago: int | None
    behind_ms: int | None
    is_behind: bool
    url: str | None


def known_by(readings: Readings) -> int | None:
    """The node whose knowledge the rows of replicas are; None while none knows more than its own log."""
    if readings.node.core.is_leader:
        return readings.node.identity.node_id
    return readings.sight.leader_id if readings.sight is not None and readings.sight.quorum else None


def replica_rows(readings: Readings) -> list[ReplicaRow]:
    """The voters, then the observers."""
    sight = readings.sight
    if sight is not None and sight.quorum is not None and not readings.node.core.is_leader:
        return _seen(readings, sight, sight.quorum)
    views = readings.node.core.replicas(readings.now_ms)
    leader_end = next((one.end_offset for one in views if one.is_leader), None)
    return [_replica(one, leader_end, readings) for one in views[:MAX_REPLICAS]]


def _seen(readings: Readings, sight: Sight, quorum: PartitionData) -> list[ReplicaRow]:
    """The replicas as the leader sees them."""
    voters = {(one.replica_id, one.replica_directory_id) for one in quorum.current_voters}
    views = [
        ReplicaView(
            ReplicaKey(one.replica_id, one.replica_directory_id if any(one.replica_directory_id) else None),
            (one.replica_id, one.replica_directory_id) in voters,
            one.replica_id == quorum.leader_id,
            None if one.log_end_offset < 0 else one.log_end_offset,
            _then(sight, one.last_fetch_timestamp, readings.now_ms),
            _then(sight, one.last_caught_up_timestamp, readings.now_ms),
            _then(sight, one.last_caught_up_timestamp, readings.now_ms),
        )
        for one in sight.states()
    ]
    leader_end = next((one.end_offset for one in views if one.is_leader), None)
    return [_replica(one, leader_end, readings) for one in views[:MAX_REPLICAS]]


def _then(sight: Sight, at_ms: int, now_ms: int) -> int | None:
    """A time of the leader's clock by the clock of this node."""
    ago_ms = sight.ago(at_ms, now_ms)
    return None if ago_ms is None else now_ms - ago_ms


def _replica(view: ReplicaView, leader_end: int | None, readings: Readings) -> ReplicaRow:
    ends = view.end_offset is not None and leader_end is not None
    behind_ms = _ago(readings.now_ms, view.behind_since_ms)
    knows = known_by(readings) is not None
    return ReplicaRow(
        id=view.key.id,
        directory_id=None if view.key.directory_id is None else uuid_text(view.key.directory_id),
        is_voter=view.is_voter,
        is_leader=view.is_leader,
        is_self=view.key.id == readings.node.identity.node_id,
        end_offset=view.end_offset,
        lag=max(0, (leader_end or 0) - (view.end_offset or 0)) if ends else None,
        fetched_ms_ago=_ago(readings.now_ms, view.last_fetch_ms),
        caught_up_ms_ago=_ago(readings.now_ms, view.last_caught_up_ms),
        behind_ms=behind_ms,
        is_behind=knows and not view.is_leader and (behind_ms is None or behind_ms > BEHIND_MS),
        url=readings.status_urls.get(view.key.id),
    )


def _ago(now_ms: int, then_ms: int | None) -> int | None:
    return None if then_ms is None else max(0, now_ms - then_ms)
