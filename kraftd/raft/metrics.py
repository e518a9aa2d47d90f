"""What a replica tells of itself in numbers: Kafka's `raft-metrics`, by Kafka's names (KIP-595, KIP-853).

Averages, maxima and rates look back over the last 30 to 60 seconds, as Kafka's do by default.  The share of
time that the loop is idle (`poll-idle-ratio-avg`) is the runner's to measure.
"""

from __future__ import annotations

from collections import deque
from math import nan
from typing import TYPE_CHECKING

from msgspec import Struct

from kraftd.raft.roles import Leader
from kraftd.raft.transitions import State
from kraftd.types import ZERO_UUID, uuid_text

if TYPE_CHECKING:
    from kraftd.raft.replica import Replica

WINDOW_MS = 30_000


class RaftMetrics(Struct, frozen=True):
    """The metrics of one moment; None for what only a leader has, nan where nothing was measured lately.

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
        """The same under Kafka's names, without what does not apply now."""
        found = {name.replace("_", "-"): getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}


class Recent:
    """Values of the window that runs, and of the one before it."""

    __slots__ = ("_before", "_now", "_start_ms")

    def __init__(self) -> None:
        self._start_ms: int | None = None  # of the window that runs
        self._now: tuple[int, float, float] | None = None  # count, sum, largest
        self._before: tuple[int, float, float] | None = None

    def record(self, value: float, now_ms: int) -> None:
        self._move_on(now_ms)
        count, total, largest = self._now or (0, 0.0, value)
        self._now = count + 1, total + value, max(largest, value)

    def average(self, now_ms: int) -> float:
        count, total, _ = self._over(now_ms)
        return total / count if count else nan

    def maximum(self, now_ms: int) -> float:
        count, _, largest = self._over(now_ms)
        return largest if count else nan

    def per_second(self, now_ms: int) -> float:
        """The sum over the time that the windows cover, of which the first is counted as whole."""
        _, total, _ = self._over(now_ms)
        if self._start_ms is None:
            return 0.0
        return total / ((now_ms - self._start_ms + WINDOW_MS) / 1000)

    def _over(self, now_ms: int) -> tuple[int, float, float]:
        self._move_on(now_ms)
        windows = [one for one in (self._before, self._now) if one is not None]
        return (
            sum(one[0] for one in windows),
            sum(one[1] for one in windows),
            max((one[2] for one in windows), default=0.0),
        )

    def _move_on(self, now_ms: int) -> None:
        if self._start_ms is None:
            self._start_ms = now_ms
        passed = (now_ms - self._start_ms) // WINDOW_MS
        if passed:
            self._before = self._now if passed == 1 else None
            self._now = None
            self._start_ms += passed * WINDOW_MS


class Measured:
    """What a replica counts on its way."""

    __slots__ = ("_election_start_ms", "_uncommitted", "appended", "commits", "elections", "fetched")

    def __init__(self) -> None:
        self.elections = Recent()
        self.commits = Recent()
        self.appended = Recent()
        self.fetched = Recent()
        self._election_start_ms: int | None = None
        self._uncommitted: deque[tuple[int, int, int]] = deque()  # end offset, records, time

    def election_began(self, now_ms: int) -> None:
        """A round of it, pre-vote or vote: the last that began counts."""
        self._election_start_ms = now_ms

    def leader_found(self, now_ms: int) -> None:
        if self._election_start_ms is not None:
            self.elections.record(now_ms - self._election_start_ms, now_ms)
            self._election_start_ms = None

    def leader_appended(self, end_offset: int, count: int, now_ms: int) -> None:
        self.appended.record(count, now_ms)
        self._uncommitted.append((end_offset, count, now_ms))

    def leader_committed(self, high_watermark: int, now_ms: int) -> None:
        """Each batch counts as the time that one of its records took, as in Kafka."""
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            _, count, since_ms = self._uncommitted.popleft()
            self.commits.record((now_ms - since_ms) / count, now_ms)

    def leadership_ended(self) -> None:
        self._uncommitted.clear()


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
    """Kafka's names: a vote shows in them, a resigned leader does not."""
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
