"""The records between a share partition's start and end offset, in batches as they were acquired."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from kraftd.partition.share.delivery import Delivery


class InFlightBatch:
    """The offsets from first to last. They have one delivery, or each its own once they were treated
    differently.
    """

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: Delivery) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: Delivery | None = whole
        self.offsets: dict[int, Delivery] = {}

    def __repr__(self) -> str:
        what = repr(self.whole) if self.whole else f"{len(self.offsets)} single ones"
        return f"<InFlightBatch {self.first_offset}-{self.last_offset} {what}>"

    def split(self) -> None:
        """Give each offset a delivery of its own."""
        if self.whole is not None:
            whole, self.whole = self.whole, None
            self.offsets = {offset: whole.copy() for offset in range(self.first_offset, self.last_offset + 1)}

    def at(self, offset: int) -> Delivery:
        """The delivery of one of its offsets."""
        return self.whole or self.offsets[offset]

    def parts(self) -> list[tuple[int, int, Delivery]]:
        """First and last offset of each delivery."""
        if self.whole is not None:
            return [(self.first_offset, self.last_offset, self.whole)]
        return [(offset, offset, delivery) for offset, delivery in self.offsets.items()]


class InFlight:
    """Batches by first offset, in order; they do not overlap, but there may be gaps."""

    __slots__ = ("_batches", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __repr__(self) -> str:
        return f"<InFlight {len(self._firsts)} batches>"

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return (self._batches[first] for first in self._firsts)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._firsts[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._firsts[-1]]

    def put(self, batch: InFlightBatch) -> None:
        if batch.first_offset not in self._batches:
            insort(self._firsts, batch.first_offset)
        self._batches[batch.first_offset] = batch

    def clear(self) -> None:
        self._firsts.clear()
        self._batches.clear()

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at an offset or before it."""
        index = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[index - 1]] if index else None

    def after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after an offset."""
        index = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[index]] if index < len(self._firsts) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin between two offsets, both included."""
        low, high = bisect_left(self._firsts, first), bisect_right(self._firsts, last)
        return [self._batches[one] for one in self._firsts[low:high]]

    def remove_before(self, first_offset: int) -> None:
        """Drop the batches that begin before an offset."""
        index = bisect_left(self._firsts, first_offset)
        for first in self._firsts[:index]:
            del self._batches[first]
        del self._firsts[:index]
