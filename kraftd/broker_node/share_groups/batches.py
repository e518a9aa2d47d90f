"""The batches that are read of one partition for a share group, in portions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kraftd.broker_node.effects import ShareRead
from kraftd.broker_node.events import ShareRecords
from kraftd.ground.pace import Pace, Slices
from kraftd.partition.share.aborted import ReadBatch
from kraftd.types import Uuid
from kraftd.wire.batch import Batch, BatchHeader, CorruptBatch
from kraftd.wire.end_marker import read_end_marker
from kraftd.wire.primitives import Buffer
from kraftd.wire.records import ENGINE

PORTION_BYTES = 1 << 20
HEADERS_AT_ONCE = 1_000
BATCH_US = 1
_TRANSACTIONAL = 0x10


class BatchesRead:
    """What is read from an offset on: no more than `max_bytes`, unless the first batch is larger, and no more
    than reach `enough_offset`.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid,
        offset: int,
        end_offset: int,
        max_bytes: int,
        enough_offset: int,
        *,
        wants_aborted: bool,
    ) -> None:
        self._where = topic, partition, topic_id
        self._next_offset = offset
        self._end_offset = end_offset
        self._enough_offset = enough_offset
        self._wants_aborted = wants_aborted
        self._max_bytes = max_bytes
        self._pieces: list[Buffer] = []
        self._ends: list[int] = []  # of each batch, in bytes
        self._is_done = offset >= end_offset
        self.batches: list[ReadBatch] = []
        self.aborted: Sequence[tuple[int, int]] = ()

    def __repr__(self) -> str:
        return f"<BatchesRead {len(self.batches)} of {self._where[0]}-{self._where[1]}>"

    @property
    def size_bytes(self) -> int:
        return self._ends[-1] if self._ends else 0

    def next_read(self) -> ShareRead | None:
        """What to read next; None if that is enough."""
        left_bytes = self._max_bytes - self.size_bytes
        if self._is_done or (self.batches and left_bytes <= 0):
            return None
        portion_bytes = max(1, min(left_bytes, PORTION_BYTES))
        place = self._next_offset, self._end_offset, portion_bytes
        return ShareRead(*self._where, *place, self._wants_aborted)

    def add(self, found: ShareRecords) -> Slices[None]:
        """Take what was read. Raises CorruptBatch."""
        pace, at = Pace(), 0
        self.aborted = tuple(dict.fromkeys((*self.aborted, *found.aborted)))
        self._is_done = not len(found.data)
        while at < len(found.data) and not self._is_done:
            headers, _, reason = ENGINE.batch_headers(found.data, at, HEADERS_AT_ONCE, False)
            if reason is not None and not headers:
                raise CorruptBatch(f"a batch that was read for a share group: {reason}", at)
            first = at
            for header in headers:
                size_bytes = header.size_bytes
                if self._ends and self.size_bytes + size_bytes > self._max_bytes:
                    self._is_done = True
                    break
                self._add_batch(header, memoryview(found.data)[at : at + size_bytes], at)
                at += size_bytes
            self._pieces.append(memoryview(found.data)[first:at])
            self._is_done |= bool(self.batches) and self.batches[-1].last_offset >= self._enough_offset
            if pace.spent(BATCH_US * len(headers)):
                yield

    def _add_batch(self, header: BatchHeader, view: memoryview, at: int) -> None:
        base, last = header.base_offset, header.last_offset
        is_abort = False
        if self._wants_aborted and header.is_control:
            marker = read_end_marker(Batch(header, view, at))
            is_abort = marker is not None and not marker.is_commit
        is_transactional = bool(header.attributes & _TRANSACTIONAL)
        self.batches.append(ReadBatch(base, last, header.producer_id, is_transactional, is_abort))
        self._ends.append(self.size_bytes + len(view))
        self._next_offset = last + 1

    def limit(self, most_bytes: int, *, is_first: bool) -> None:
        """Keep what fits into so many bytes; the first batch stays if no partition has given any before."""
        kept = bisect_right(self._ends, most_bytes)
        if is_first and self._ends:
            kept = max(1, kept)
        del self.batches[kept:], self._ends[kept:]

    def records(self, first_offset: int, last_offset: int) -> Buffer:
        """The batches with offsets from one to another."""
        start = max(0, bisect_right(self.batches, first_offset, key=lambda one: one.base_offset) - 1)
        stop = max(start + 1, bisect_right(self.batches, last_offset, key=lambda one: one.base_offset))
        begin, end = self._ends[start - 1] if start else 0, self._ends[stop - 1]
        whole = self._pieces[0] if len(self._pieces) == 1 else memoryview(b"".join(self._pieces))
        return memoryview(whole)[begin:end]
