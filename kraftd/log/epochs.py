"""The first offset of each epoch in the log, and the `leader-epoch-checkpoint` file that stores them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from kraftd.types import OffsetAndEpoch

FILE_NAME = "leader-epoch-checkpoint"
NO_END_OFFSET = (1 << 63) - 1
_ALONE = tuple((number,) for number in range(64))  # most of very many logs have one epoch, from offset 0 on


class EpochCache:
    """Epochs and their first offsets, both ascending (Kafka's LeaderEpochFileCache).

    Tuples take a third less memory than lists, and each of many partitions has two.
    """

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: tuple[int, ...] = ()
        self._starts: tuple[int, ...] = ()
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    def __repr__(self) -> str:
        return f"<EpochCache {', '.join(f'{epoch}@{start}' for epoch, start in self.entries)}>"

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int | None:
        return self._epochs[-1] if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let epoch begin at start_offset and drop entries that contradict it. Returns whether anything
        changed.
        """
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return False
        kept = len(self._epochs)
        while kept and (self._epochs[kept - 1] >= epoch or self._starts[kept - 1] >= start_offset):
            kept -= 1
        self._epochs = (*self._epochs[:kept], epoch) if kept else _alone(epoch)
        self._starts = (*self._starts[:kept], start_offset) if kept else _alone(start_offset)
        return True

    def end_offset_for(self, epoch: int, log_end: int) -> OffsetAndEpoch | None:
        """The largest epoch at or below epoch and its end offset; None if all known epochs are below it.

        For an epoch below all known ones it is that epoch itself, with the start of the lowest known one.
        """
        if self._epochs and epoch == self._epochs[-1]:
            return OffsetAndEpoch(log_end, epoch)
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return None
        return OffsetAndEpoch(self._starts[above], self._epochs[above - 1] if above else epoch)

    def epoch_of(self, offset: int) -> int | None:
        """The epoch of the record at offset; None below the first known epoch."""
        at = bisect_right(self._starts, offset) - 1
        return self._epochs[at] if at >= 0 else None

    def span_of(self, offset: int) -> tuple[int | None, int]:
        """The epoch of the record at offset, None below the first known one, and the offset where it ends."""
        after = bisect_right(self._starts, offset)
        end_offset = self._starts[after] if after < len(self._starts) else NO_END_OFFSET
        return self._epochs[after - 1] if after else None, end_offset

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget the epochs that begin at or past end_offset. Returns whether anything changed."""
        kept, before = bisect_left(self._starts, end_offset), len(self._starts)
        self._epochs, self._starts = self._epochs[:kept], self._starts[:kept]
        return kept != before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Let the epoch of start_offset begin there, and forget those before. Returns whether anything
        changed."""
        at = bisect_right(self._starts, start_offset) - 1
        if at < 0 or (at == 0 and self._starts[0] == start_offset):
            return False
        self._epochs = self._epochs[at:]
        self._starts = (start_offset, *self._starts[at + 1 :])
        return True

    def clear(self) -> None:
        self._epochs = self._starts = ()


def _alone(number: int) -> tuple[int]:
    """A tuple of one number, the same object for small ones."""
    return _ALONE[number] if 0 <= number < len(_ALONE) else (number,)


def encode_epochs(entries: list[tuple[int, int]]) -> bytes:
    """Content of `leader-epoch-checkpoint`: a version, a count, a line an epoch."""
    lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
    return ("\n".join(lines) + "\n").encode()


def decode_epochs(data: bytes) -> list[tuple[int, int]] | None:
    """The entries in the file; None if it is malformed (the log holds them too)."""
    try:
        lines = data.decode().split("\n")
        if lines[0].strip() != "0":
            return None
        count = int(lines[1])
        entries = [
            (int(epoch), int(start)) for epoch, start in (line.split() for line in lines[2:] if line.strip())
        ]
    except (ValueError, IndexError):
        return None
    ascending = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(entries))
    return entries if len(entries) == count and ascending and all(e >= 0 <= s for e, s in entries) else None
