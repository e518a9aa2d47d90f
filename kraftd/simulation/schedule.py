"""Virtual time: the planned actions in order. Time is in microseconds since the world began.

Actions of the same microsecond happen in the order of their planning, so a history is one sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

MS = 1_000
SECOND = 1_000_000

Action = Callable[..., None]


class Schedule:
    """The queue of actions, and the time."""

    __slots__ = ("_heap", "_sequence", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._sequence = 0

    def __repr__(self) -> str:
        return f"<Schedule at {self.now_us / SECOND:.3f} s, {len(self._heap)} planned>"

    def after(self, delay_us: int, action: Action, *arguments: Any) -> None:
        self.at(self.now_us + delay_us, action, *arguments)

    def at(self, time_us: int, action: Action, *arguments: Any) -> None:
        self._sequence += 1
        if time_us < self.now_us:
            time_us = self.now_us
        heappush(self._heap, (time_us, self._sequence, action, arguments))

    def run_until(self, end_us: int) -> None:
        """Run every action before `end_us`."""
        heap = self._heap
        while heap and heap[0][0] < end_us:
            self.now_us, _, action, arguments = heappop(heap)
            action(*arguments)
        self.now_us = max(self.now_us, end_us)


class Clock:
    """One host's clock: it may be wrong, and run fast or slow.

    A process reads the wall clock at its start, and adds monotonic time from then on. A jump of the wall
    clock, forward or backward, changes `wall_ahead_ms` at once, and the process's own time at its next start.
    """

    __slots__ = ("_offset_at_start_us", "_started_us", "_wall_us", "offset_us", "rate_ppm")

    def __init__(self, offset_us: int, rate_ppm: int) -> None:
        self.offset_us = offset_us  # of the wall clock
        self.rate_ppm = rate_ppm  # its excess speed
        self._started_us = 0
        self._offset_at_start_us = offset_us
        self._wall_us = offset_us

    def start(self, now_us: int) -> None:
        """Read the wall clock for a process that starts."""
        self._started_us = now_us
        self._offset_at_start_us = self.offset_us
        self._wall_us = self.offset_us + now_us + now_us * self.rate_ppm // 1_000_000

    def now_ms(self, now_us: int) -> int:
        elapsed_us = now_us - self._started_us
        return (self._wall_us + elapsed_us + elapsed_us * self.rate_ppm // 1_000_000) // MS

    def wall_ahead_ms(self) -> int:
        """How far the wall clock has jumped since the process started."""
        return (self.offset_us - self._offset_at_start_us) // MS

    def when_us(self, local_ms: int) -> int:
        """The first moment at which this clock shows `local_ms` or more."""
        local_us = local_ms * MS - self._wall_us
        if local_us <= 0:
            return self._started_us
        return self._started_us - (-local_us * 1_000_000 // (1_000_000 + self.rate_ppm))

    def __repr__(self) -> str:
        return f"<Clock off by {self.offset_us // MS} ms, {self.rate_ppm} ppm fast>"
