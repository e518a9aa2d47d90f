"""A replica's numbers: Kafka's `raft-metrics`, by Kafka's names (KIP-595, KIP-853).

`measured` has the numbers that are counted over time. The runner measures the share of time that the loop is
idle (`poll-idle-ratio-avg`).
"""

from __future__ import annotations

from msgspec import Struct

from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader
from kraftd.raft.transitions import State
from kraftd.types import ZERO_UUID, uuid_text


class RaftMetrics(Struct, frozen=True):
    """The metrics of one moment; None for what only a leader has, nan if nothing was measured lately.

    Latencies are milliseconds, rates records a second.  The high watermark is -1 while unknown, as are leader
    and vote.
    """

    current_state: str
    current_leader: int
    current_vote: int
    current_vote_directory_id: str
    current_epoch: int
    high_watermark: int
    log_end_offset: int
    log_end_epoch: int
    number_of_voters: int
    number_of_observers: int | None
    number_unknown_voter_connections: int
    uncommitted_voter_change: int | None
    election_latency_avg: float
    election_latency_max: float
    commit_latency_avg: float
    commit_latency_max: float
    append_records_rate: float
    fetch_records_rate: float

    def by_name(self) -> dict[str, int | float | str]:
        """The metrics under Kafka's names, without those that do not apply now."""
        found = {name.replace("_", "-"): getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}


def take_metrics(replica: Replica, now_ms: int) -> RaftMetrics:
    measured, log = replica.measured, replica.log
    vote, directory_id = _vote(replica)
    leads = replica.role if isinstance(replica.role, Leader) else None
    unknown = sum(
        1
        for one in replica.voters.ids
        if one != replica.config.node_id and not replica.voter_destination(one)
    )
    return RaftMetrics(
        current_state=_state(replica),
        current_leader=replica.leader_id_or_none,
        current_vote=vote,
        current_vote_directory_id=uuid_text(directory_id),
        current_epoch=replica.epoch,
        high_watermark=replica.high_watermark if leads is None else leads.high_watermark,
        log_end_offset=log.end_offset,
        log_end_epoch=log.last_epoch,
        number_of_voters=len(replica.voters),
        number_of_observers=None if leads is None else len(leads.progress.observers),
        number_unknown_voter_connections=unknown,
        uncommitted_voter_change=None if leads is None else int(leads.voter_change is not None),
        election_latency_avg=measured.elections.average(now_ms),
        election_latency_max=measured.elections.maximum(now_ms),
        commit_latency_avg=measured.commits.average(now_ms),
        commit_latency_max=measured.commits.maximum(now_ms),
        append_records_rate=measured.appended.per_second(now_ms),
        fetch_records_rate=measured.fetched.per_second(now_ms),
    )


def _state(replica: Replica) -> str:
    """Kafka's name of the state. It shows a vote, but not whether a leader has resigned."""
    state, voted = replica.state, replica.voted is not None
    if state is State.FOLLOWER and not replica.is_voter:
        return "observer"
    if state in (State.PROSPECTIVE, State.UNATTACHED) and voted:
        return f"{state.value}-voted"
    return State.UNATTACHED.value if state is State.RESIGNED else state.value


def _vote(replica: Replica) -> tuple[int, bytes]:
    if replica.state in (State.LEADER, State.CANDIDATE):
        return replica.config.node_id, replica.config.directory_id
    voted = replica.voted
    return (-1, ZERO_UUID) if voted is None else (voted.id, voted.directory_id or ZERO_UUID)
