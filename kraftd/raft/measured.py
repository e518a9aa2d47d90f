"""The counts of a replica for its metrics: elections, commits, and records appended and fetched."""

from __future__ import annotations

from collections import deque

from kraftd.recent import Recent


class Measured:
    """The counts of one replica."""

    __slots__ = ("_election_start_ms", "_uncommitted", "appended", "commits", "elections", "fetched")

    def __init__(self) -> None:
        self.elections = Recent()
        self.commits = Recent()
        self.appended = Recent()
        self.fetched = Recent()
        self._election_start_ms: int | None = None
        self._uncommitted: deque[tuple[int, int, int]] = deque()  # end offset, records, time

    def election_began(self, now_ms: int) -> None:
        """Note the start of a round, pre-vote or vote: the last one that began counts."""
        self._election_start_ms = now_ms

    def leader_found(self, now_ms: int) -> None:
        if self._election_start_ms is not None:
            self.elections.record(now_ms - self._election_start_ms, now_ms)
            self._election_start_ms = None

    def leader_appended(self, end_offset: int, count: int, now_ms: int) -> None:
        self.appended.record(count, now_ms)
        self._uncommitted.append((end_offset, count, now_ms))

    def leader_committed(self, high_watermark: int, now_ms: int) -> None:
        """Note commits. Each batch counts as the time that one of its records took, as in Kafka."""
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            _, count, since_ms = self._uncommitted.popleft()
            self.commits.record((now_ms - since_ms) / count, now_ms)

    def leadership_ended(self) -> None:
        self._uncommitted.clear()
