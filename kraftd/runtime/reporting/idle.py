"""The share of time in which the loop's thread was idle, over the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

WINDOW_NS = 60 * 10**9


class IdleRatio:
    """Measures the calling thread: its processor time is the time in which it is not idle.

    `now_ns` is the wall clock, `thread_ns` the clock of this thread's processor time.
    """

    def __init__(self, now_ns: Callable[[], int], thread_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._thread_ns = thread_ns
        self._samples: deque[tuple[int, int]] = deque([(now_ns(), thread_ns())])

    def sample(self) -> None:
        """Take a sample; to be called every few seconds."""
        now_ns = self._now_ns()
        self._samples.append((now_ns, self._thread_ns()))
        while len(self._samples) > 1 and now_ns - self._samples[1][0] >= WINDOW_NS:
            self._samples.popleft()

    def measure(self) -> float:
        """The ratio, from 0 (always busy) to 1."""
        since_ns, used_ns = self._samples[0]
        passed_ns = self._now_ns() - since_ns
        if passed_ns <= 0:
            return 1.0
        return max(0.0, min(1.0, 1 - (self._thread_ns() - used_ns) / passed_ns))

    def __repr__(self) -> str:
        return f"<IdleRatio {self.measure():.3f} of {len(self._samples)} samples>"
