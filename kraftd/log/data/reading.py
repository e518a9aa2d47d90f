"""Reads whole batches of a segment, and serves none whose bytes have changed."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from kraftd.log.data.segment import DataSegment, Opener
from kraftd.log.disk import Disk, File
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import CorruptStorage
from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import HEADER_BYTES, CorruptBatch
from kraftd.wire.records import ENGINE

_CHUNK_BYTES = 8 << 10
AT_ONCE_BYTES = 2 << 20  # a copy of more from the page cache takes the event loop over 3 ms
_START = Struct(">qi")  # base offset, length of what follows it
_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
_LEADER_EPOCH = Struct(">i")
_LEADER_EPOCH_AT = 12
_ANY_EPOCH = -1

REMEDY = (
    "What comes before and after it can be read. Restore the file from a copy or, with other replicas, move "
    "the partition's directory aside and let this broker fetch it again"
)


class Span(NamedTuple):
    """Where whole batches are in bytes that were read. If there are none, `start` is the batch to read on
    from, and missing_bytes how many it needs: 0 if it is beyond the end. next_offset: the one after them.
    """

    start: int
    stop: int
    missing_bytes: int = 0
    next_offset: int = 0


def select(data: bytes | memoryview, offset: int, max_bytes: int, end_offset: int, limit_offset: int) -> Span:
    """The batches from the first on that ends at or past offset: one at least, as many as max_bytes hold,
    none that ends at or past end_offset. data begins with a batch, and all of them end before limit_offset.

    Raises CorruptBatch for headers that cannot follow each other.
    """
    found = ENGINE.select_batches(data, offset, max_bytes, end_offset, limit_offset)
    start, stop = found[:2]
    if stop < 0:
        base_offset, length = _START.unpack_from(data, start)
        last = base_offset + _LAST_OFFSET_DELTA.unpack_from(data, start + _LAST_OFFSET_DELTA_AT)[0]
        raise CorruptBatch(f"a batch of offsets {base_offset} to {last}, {length} bytes long", start)
    return Span(*found)


class SegmentRead(NamedTuple):
    """A read of one segment, whose batches end at end_position and before limit_offset. With cached_only it
    does not wait for the disk, and leaves what is over AT_ONCE_BYTES to a thread.
    """

    segment: DataSegment
    directory: str
    opened: Opener
    interval_bytes: int
    end_position: int
    limit_offset: int
    epochs: EpochCache
    cached_only: bool = False

    def batches(self, offset: int, max_bytes: int, end_offset: int) -> bytes | memoryview | None:
        """See `select`; empty if the segment has no such batch, None if it is left to a thread.

        Raises CorruptStorage.
        """
        segment = self.segment
        entry_offset, position = segment.place(offset, self.directory, self.opened)
        end = self.end_position
        before_bytes = self.interval_bytes + _CHUNK_BYTES  # as many may be there before the batch, and behind
        wanted = min(max_bytes, end) + before_bytes
        if position >= end:
            entry_offset, position = None, 0  # the index is wrong
        continued = entry_offset is None and position > 0  # the batch is there: the last read ended before it
        if continued:
            wanted = max(min(max_bytes, end), before_bytes)
        while position < end:
            data = self._read(position, min(wanted, end - position))
            if data is None:
                return None
            if entry_offset is not None:
                if not _is_entry_of(data, entry_offset):
                    # The index is wrong: without it, the batches are found from the beginning on.
                    entry_offset, position = None, 0
                    continue
                entry_offset = None
            elif continued and (len(data) < HEADER_BYTES or _START.unpack_from(data)[0] < offset):
                # A changed header, which batches before it will show.
                segment.forget_place()
                return self.batches(offset, max_bytes, end_offset)
            continued = False
            span = self._select(data, position, offset, max_bytes, end_offset)
            if span.stop > span.start:
                chosen = memoryview(data)[span.start : span.stop]
                sound_bytes = self._check(chosen, position + span.start, offset)
                if self.cached_only and sound_bytes == len(chosen):
                    segment.note_end(span.next_offset, position + span.stop)
                return data if sound_bytes == len(data) else chosen[:sound_bytes]
            if not span.missing_bytes:
                return b""
            if position + span.start + span.missing_bytes > end and position + span.start < end:
                reason = f"a batch of {span.missing_bytes} bytes does not end in the segment"
                raise self._corrupt(position + span.start, offset, reason)
            position += span.start
            wanted = max(span.missing_bytes, wanted)
        return b""

    def _read(self, position: int, size_bytes: int) -> bytes | memoryview | None:
        if self.cached_only and size_bytes > AT_ONCE_BYTES:
            return None
        file = self.opened(self.segment.path(self.directory))
        data = file.read_cached(position, size_bytes) if self.cached_only else file.read(position, size_bytes)
        if data is not None and len(data) < size_bytes:
            if self.cached_only:
                return None
            reason = f"{len(data)} bytes are there, {size_bytes} were written"
            raise self._corrupt(position, None, reason)
        return data

    def _select(
        self, data: bytes | memoryview, position: int, offset: int, max_bytes: int, end_offset: int
    ) -> Span:
        try:
            return select(data, offset, max_bytes, end_offset, self.limit_offset)
        except CorruptBatch as error:
            raise self._corrupt(position + error.position, offset, error.reason) from None

    def _check(self, view: memoryview, position: int, offset: int) -> int:
        """How many bytes of these batches are sound. Raises CorruptStorage if the first one is not."""
        end, reason, epoch = 0, None, None
        while end < len(view) and reason is None:
            # The checksum does not cover the leader epoch.
            epoch, end_offset = self.epochs.span_of(_START.unpack_from(view, end)[0])
            end, reason = ENGINE.verify_batches(view, end, end_offset, _ANY_EPOCH if epoch is None else epoch)
        if not end:
            if reason == "leader epoch":
                (found,) = _LEADER_EPOCH.unpack_from(view, _LEADER_EPOCH_AT)
                raise self._corrupt(position, offset, f"epoch {found} is where {epoch} belongs")
            raise self._corrupt(position, offset, f"wrong {reason}")
        return end

    def _corrupt(self, position: int, offset: int | None, reason: str) -> CorruptStorage:
        return CorruptStorage(self.segment.path(self.directory), position, offset, reason, REMEDY)


def _is_entry_of(data: bytes | memoryview, last_offset: int) -> bool:
    """Return whether the batch at the beginning ends with that offset, as an index entry claims."""
    if len(data) < HEADER_BYTES:
        return False
    base_offset = _START.unpack_from(data)[0]
    return bool(base_offset + _LAST_OFFSET_DELTA.unpack_from(data, _LAST_OFFSET_DELTA_AT)[0] == last_offset)


class ColdRead(NamedTuple):
    """A read that a thread may do, over the segments from the one that holds the offset on.

    The loop compares cut_count with the log's afterwards, whether it failed or not: after a truncation
    meanwhile it reads again.
    """

    segments: Sequence[DataSegment]
    directory: str
    interval_bytes: int
    cut_count: int
    offset: int
    max_bytes: int
    end_offset: int
    log_end: int
    end_position: int  # of the last segment, as the log end
    epochs: EpochCache

    def run(self, opened: Opener) -> bytes | memoryview:
        """See `DataLog.read`. Blocks. `opened` opens files for this thread alone. Raises CorruptStorage."""
        found = self.read(opened, cached_only=False)
        assert found is not None
        return found

    def read(self, opened: Opener, *, cached_only: bool) -> bytes | memoryview | None:
        """What `run` returns; with cached_only, None if it is left to a thread."""
        last = len(self.segments) - 1
        for at, segment in enumerate(self.segments):
            if segment.base_offset >= self.end_offset:
                break
            ends = (
                (self.end_position, self.log_end)
                if at == last
                else (segment.end_position, self.segments[at + 1].base_offset)
            )
            reader = SegmentRead(
                segment, self.directory, opened, self.interval_bytes, *ends, self.epochs, cached_only
            )
            found = reader.batches(self.offset, self.max_bytes, self.end_offset)
            if found is None or len(found):
                return found
        return b""


def run_cold(disk: Disk, read: ColdRead) -> bytes | memoryview:
    """Read in a thread, with files of its own. Raises StorageError."""
    opened: list[File] = []

    def opener(path: str) -> File:
        opened.append(disk.open(path))
        return opened[-1]

    try:
        return read.run(opener)
    finally:
        for file in opened:
            file.close()
