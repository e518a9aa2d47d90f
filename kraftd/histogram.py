"""Counts by size, as plain numbers, which other modules turn into metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

# From 50 microseconds to 10 seconds, in nanoseconds.
TIME_BOUNDS_NS = (50_000, *(step * 10**power for power in range(5, 10) for step in (1, 2, 5)), 10**10)


class Histogram:
    """`counts[i]` values were at most `bounds[i]`, and more than the bound before; the last count is of those
    above all bounds. `total` is their sum. One writer, readers of any thread.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int] = TIME_BOUNDS_NS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def note(self, value: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """An estimate of the value that this share of all values does not exceed; 0 without values.

        Values count as spread evenly over their bucket; those above all bounds as equal to the last one.
        """
        left = self.count * share
        below = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if count and left <= count:
                return below + (bound - below) * left / count
            left -= count
            below = bound
        return float(below if self.counts[-1] else 0)

    def __repr__(self) -> str:
        return f"<Histogram of {self.count} values, {self.total} in all>"
