"""The daemon's time: wall time at its start plus monotonic time since."""

from __future__ import annotations

import time


class Clock:
    """Milliseconds since the Unix epoch by a clock that neither jumps nor runs backwards."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000
