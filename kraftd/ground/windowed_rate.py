"""Kafka's windowed rate: what was recorded within the last samples, a second (its Rate and SimpleRate)."""

from __future__ import annotations

from collections import deque

WINDOW_MS = 1_000  # quota.window.size.seconds
SAMPLE_COUNT = 11  # quota.window.num
LONGEST_MS = 2**31 - 1


class WindowedRate:
    """Samples of `window_ms` each. One counts until `sample_count` windows after its last record."""

    __slots__ = ("_sample_count", "_samples", "_sum", "_window_ms")

    def __init__(self, window_ms: int = WINDOW_MS, sample_count: int = SAMPLE_COUNT) -> None:
        self._window_ms = window_ms
        self._sample_count = sample_count
        self._samples: deque[list[float]] = deque()  # [start, sum, last]
        self._sum = 0.0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value; a negative one takes back what was recorded just now."""
        self._expire(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0.0, now_ms])
        samples[-1][1] += value
        samples[-1][2] = now_ms
        self._sum += value

    def excess_ms(self, quota: float, now_ms: int) -> int:
        """How long until the rate falls to the quota; 0 within it."""
        elapsed_ms = self._elapsed_ms(now_ms)
        # A short history counts as one of all samples but the current, so that a start may be quick.
        full_windows = elapsed_ms // self._window_ms
        elapsed_ms += max(0, self._sample_count - 1 - full_windows) * self._window_ms
        elapsed_ms = max(1, elapsed_ms)
        rate = self._sum * 1000 / elapsed_ms
        if rate <= quota:
            return 0
        if quota <= 0:
            return LONGEST_MS
        return min(LONGEST_MS, int((rate - quota) / quota * elapsed_ms + 0.5))

    def is_over(self, quota: float, now_ms: int) -> bool:
        """Return whether the rate since the first sample, at least of one window, is above the quota."""
        return self._sum * 1000 > quota * max(self._elapsed_ms(now_ms), self._window_ms)

    def is_empty(self, now_ms: int) -> bool:
        """Return whether nothing is left to count."""
        self._expire(now_ms)
        return not self._samples

    def _elapsed_ms(self, now_ms: int) -> float:
        self._expire(now_ms)
        return now_ms - self._samples[0][0] if self._samples else 0

    def _expire(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][2] >= self._sample_count * self._window_ms:
            self._sum -= samples.popleft()[1]
        if not samples:
            self._sum = 0.0  # without what rounding left

    def __repr__(self) -> str:
        return f"<WindowedRate {self._sum:g} in {len(self._samples)} samples>"
