"""The daemon's time: monotonic time for timeouts, and how far the wall clock has moved away from it."""

from __future__ import annotations

import time
from collections.abc import Callable

TOGETHER_NS = 1_000_000  # readings of both clocks that lie further apart do not belong together
ATTEMPTS = 5


class Clock:
    """Milliseconds since the Unix epoch.

    `now_ms` neither jumps nor runs backwards: the wall clock at the start plus monotonic time since.
    `wall_ms` is the wall clock itself.
    """

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._offset_ns = self._apart_ns()

    def now_ms(self) -> int:
        return (self._monotonic_ns() + self._offset_ns) // 1_000_000

    def wall_ms(self) -> int:
        return self._wall_ns() // 1_000_000

    def wall_ahead_ms(self) -> int:
        """How far the wall clock is ahead of now_ms: 0 until it is set, or the machine was suspended.

        Every step calls it, so it reads twice only if another thread ran meanwhile.
        """
        before_ns = self._monotonic_ns()
        apart_ns = self._wall_ns() - before_ns
        if self._monotonic_ns() - before_ns >= TOGETHER_NS:
            apart_ns = self._apart_ns()
        return (apart_ns - self._offset_ns + 500_000) // 1_000_000

    def _apart_ns(self) -> int:
        """The wall clock minus the monotonic one; another thread may run between two readings."""
        found: list[tuple[int, int]] = []
        for _ in range(ATTEMPTS):
            before_ns = self._monotonic_ns()
            wall_ns = self._wall_ns()
            took_ns = self._monotonic_ns() - before_ns
            found.append((took_ns, wall_ns - before_ns))
            if took_ns < TOGETHER_NS:
                break
        return min(found)[1]

    def __repr__(self) -> str:
        return f"<Clock, the wall clock {self.wall_ahead_ms()} ms ahead>"
