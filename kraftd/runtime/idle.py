"""Which part of its time the loop's thread has nothing to do, over the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

WINDOW_NS = 60 * 10**9


class IdleRatio:
    """Of the thread that calls it: what it uses of the processor is what it does not idle.

    `now_ns` and `thread_ns` are clocks: of the wall, and of this thread's time on the processor.
    """

    def __init__(self, now_ns: Callable[[], int], thread_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._thread_ns = thread_ns
        self._samples: deque[tuple[int, int]] = deque([(now_ns(), thread_ns())])

    def sample(self) -> None:
        """To be called every few seconds."""
        now_ns = self._now_ns()
        self._samples.append((now_ns, self._thread_ns()))
        while len(self._samples) > 1 and now_ns - self._samples[1][0] >= WINDOW_NS:
            self._samples.popleft()

    def measure(self) -> float:
        """From 0, always busy, to 1."""
        since_ns, used_ns = self._samples[0]
        passed_ns = self._now_ns() - since_ns
        if passed_ns <= 0:
            return 1.0
        return max(0.0, min(1.0, 1 - (self._thread_ns() - used_ns) / passed_ns))

    def __repr__(self) -> str:
        return f"<IdleRatio {self.measure():.3f} of {len(self._samples)} samples>"
