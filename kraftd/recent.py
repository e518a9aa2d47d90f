"""Averages, maxima and rates of the last 30 to 60 seconds, as far as Kafka's metrics look back by default."""

from __future__ import annotations

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
