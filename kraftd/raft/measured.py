"""The counts of a replica for its metrics: elections, commits, and records appended and fetched.

Averages, maxima and rates look back over the last 30 to 60 seconds, as Kafka's do by default.
"""

from __future__ import annotations

from collections import deque
from math import nan

WINDOW_MS = 30_000


class Recent:
    """Values of the current window and of the one before it."""

    __slots__ = ("_before", "_now", "_start_ms")

    def __init__(self) -> None:
        self._start_ms: int | None = None  # of the current window
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
        """The sum divided by the time that the windows cover; the first counts as whole."""
        _, total, _ = self._over(now_ms)
        return total / ((now_ms - self._move_on(now_ms) + WINDOW_MS) / 1000)

    def _over(self, now_ms: int) -> tuple[int, float, float]:
        self._move_on(now_ms)
        windows = [one for one in (self._before, self._now) if one is not None]
        return (
            sum(one[0] for one in windows),
            sum(one[1] for one in windows),
            max((one[2] for one in windows), default=0.0),
        )

    def _move_on(self, now_ms: int) -> int:
        """Begin another window if it is time; returns when the current one began."""
        if self._start_ms is None:
            self._start_ms = now_ms
        passed = (now_ms - self._start_ms) // WINDOW_MS
        if passed:
            self._before = self._now if passed == 1 else None
            self._now = None
            self._start_ms += passed * WINDOW_MS
        return self._start_ms


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
