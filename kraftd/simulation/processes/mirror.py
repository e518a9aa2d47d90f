"""The checkers' copy of a directory's log: the place, epoch and checksum of each batch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch


class Entry(NamedTuple):
    """One batch."""

    base: int
    end: int
    epoch: int
    crc: int


class LogMirror:
    """The batches of a log from its start on. All before `synced_end` must survive a loss of power."""

    __slots__ = ("_ends", "entries", "start", "start_epoch", "synced_end")

    def __init__(self, start: int = 0, start_epoch: int = 0) -> None:
        self.start = start
        self.start_epoch = start_epoch  # of the record before the start; 0 if there is none
        self.entries: list[Entry] = []
        self._ends: list[int] = []
        self.synced_end = start

    @classmethod
    def of(cls, batches: Iterable[Batch], start: int, start_epoch: int) -> LogMirror:
        mirror = cls(start, start_epoch)
        for batch in batches:
            mirror.add(entry_of(batch))
        mirror.synced_end = mirror.end
        return mirror

    @property
    def end(self) -> int:
        return self._ends[-1] if self._ends else self.start

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else self.start_epoch

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._ends.append(entry.end)

    def sync(self, end: int) -> None:
        self.synced_end = max(self.synced_end, min(end, self.end))

    def truncate(self, end: int) -> list[Entry]:
        """Drop and return the batches that end after `end`."""
        keep = bisect_left(self._ends, end + 1)
        gone = self.entries[keep:]
        del self.entries[keep:], self._ends[keep:]
        self.synced_end = min(self.synced_end, self.end)
        return gone

    def reset(self, start: int, epoch: int) -> None:
        self.entries.clear()
        self._ends.clear()
        self.start = self.synced_end = start
        self.start_epoch = epoch

    def start_at(self, start: int) -> None:
        """Drop the batches below: they were removed."""
        if start > self.start:
            epoch = self.epoch_before(start)
            keep = bisect_left(self._ends, start + 1)
            del self.entries[:keep], self._ends[:keep]
            self.start, self.start_epoch = start, self.start_epoch if epoch is None else epoch

    def lose_unsynced(self) -> None:
        self.truncate(self.synced_end)

    def entry_before(self, offset: int) -> Entry | None:
        """The batch that ends at or holds `offset - 1`."""
        index = bisect_left(self._ends, offset)
        return (
            self.entries[index] if index < len(self.entries) and self.entries[index].base < offset else None
        )

    def epoch_before(self, offset: int) -> int | None:
        """The epoch of the record at `offset - 1`; None if this log does not hold it."""
        entry = self.entry_before(offset)
        if entry is not None:
            return entry.epoch
        return self.start_epoch if offset == self.start else None

    def between(self, start: int, end: int) -> list[Entry]:
        """The batches that end in (start, end]."""
        return self.entries[bisect_left(self._ends, start + 1) : bisect_left(self._ends, end + 1)]

    def __repr__(self) -> str:
        return f"<LogMirror {self.start}..{self.end}, synced to {self.synced_end}, epoch {self.last_epoch}>"


def entry_of(batch: Batch) -> Entry:
    header = batch.header
    return Entry(header.base_offset, header.next_offset, header.leader_epoch, header.crc)
