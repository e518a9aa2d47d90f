"""One cleaning of a compacted log: a thread reads and writes, and the loop lets what it wrote take effect.

    cleaning = Cleaning(...)
    cleaning.note_keys()                      # in a thread
    while (group := cleaning.next_group()) is not None:
        cleaned = cleaning.clean(group)       # in a thread
        log.replace_segments(group, cleaned, now_ms)

Of the keys in the dirty part the newest records stay, there and in all that is before it. Nothing of the log
changes before `replace_segments`; what an end of the process leaves, the next start removes or finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from kraftd.log.data.cleanable import REMEDY, Cleanable, groups, segments_from
from kraftd.log.data.cleaned_transactions import CleanedTransactions
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.segment import DataSegment
from kraftd.log.data.transaction_index import AbortedTransaction, encode_aborted
from kraftd.log.disk import Disk, File
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.segment import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    scan,
)
from kraftd.wire.batch import Batch, BatchHeader, CorruptBatch, parse_header
from kraftd.wire.compaction import KeyOffsets, delete_horizon_ms, with_records, without_records
from kraftd.wire.end_marker import read_end_marker
from kraftd.wire.producer_snapshot import SnapshotEntry

DEFAULT_IO_BYTES = 256 << 10
_OPEN_FILES = 8

Pause = Callable[[int], None]
"""Called in the thread for bytes read or written: it may wait, and raise to give the cleaning up."""


class Cleaning:
    """See the module. producers: those that are active, as a snapshot of the log end has them.

    io_bytes: how much is read, or written, at once.
    end_offset: where the next cleaning begins, once `note_keys` has run. read_bytes counts both passes,
    copied_bytes the second: what was read to be written anew. Each method of a thread raises
    CorruptStorage, StorageError, FileNotFoundError for a segment that was removed meanwhile.
    """

    def __init__(
        self,
        log: DataLog,
        found: Cleanable,
        keys: KeyOffsets,
        producers: Iterable[SnapshotEntry],
        now_ms: int,
        pause: Pause,
        io_bytes: int = DEFAULT_IO_BYTES,
    ) -> None:
        self.log = log
        self.found = found
        self.read_bytes = 0
        self.written_bytes = 0
        self._noted_bytes = 0
        self._keys = keys
        self._producers: Mapping[int, SnapshotEntry] = {one.producer_id: one for one in producers}
        self._now_ms = now_ms
        self._pause = pause
        self._io_bytes = io_bytes
        self._settings = log.settings
        self._directory = log.directory
        self._log_start, self._log_end = log.log_start, log.log_end
        self._segments = list(log.segments)
        self._files = log.files
        self._disk = self._files.resources.disk
        self._transactions = CleanedTransactions()
        self._groups: Iterator[list[DataSegment]] = iter(())

    def __repr__(self) -> str:
        return f"<Cleaning of {self._directory} to {self.found.first_uncleanable}, {self._keys!r}>"

    @property
    def end_offset(self) -> int:
        return self._keys.latest_offset + 1

    @property
    def copied_bytes(self) -> int:
        return self.read_bytes - self._noted_bytes

    @property
    def key_count(self) -> int:
        return self._keys.count

    # --- the keys ---

    def note_keys(self) -> None:
        """Note the newest offset of each key in the dirty part, as far as they fit."""
        first, end = self.found.first_dirty, self.found.first_uncleanable
        dirty = segments_from([one for one in self._segments if one.base_offset < end], first)
        transactions = CleanedTransactions()
        transactions.add(self._aborted_between(first, end))
        ends = [one.base_offset for one in dirty[1:]] + [end]
        with _Files(self._disk) as files:
            for segment, segment_end in zip(dirty, ends, strict=True):
                if not self._note_segment(segment, files, transactions):
                    return
                self._note_to(segment_end - 1)

    def _note_segment(self, segment: DataSegment, files: _Files, transactions: CleanedTransactions) -> bool:
        keys, first = self._keys, self.found.first_dirty
        position = segment.place(first, self._directory, files.opened)[1]
        for batch in self._batches(segment, files, position):
            header = batch.header
            if header.is_control:
                transactions.is_empty_end(header, _is_commit(batch))
            elif not transactions.is_aborted(header) and not keys.note(batch, first):
                return False
            if header.last_offset >= first:
                self._note_to(header.last_offset)
        return True

    def _note_to(self, offset: int) -> None:
        self._keys.latest_offset = max(self._keys.latest_offset, offset)

    # --- the segments ---

    def begin(self) -> None:
        """Divide the segments into groups, on the loop. Raises StorageError."""
        self._noted_bytes = self.read_bytes
        self._groups = iter(groups(self.log, self.end_offset, self.found.first_uncleanable))

    def next_group(self) -> list[DataSegment] | None:
        """The segments that become one next."""
        return next(self._groups, None)

    def clean(self, group: Sequence[DataSegment]) -> DataSegment:
        """Write, as `.cleaned` and durably, the segment that takes the place of a group.

        Nothing of it stays if that fails or is given up: it would keep a full disk full.
        """
        cleaned = DataSegment(group[0].base_offset, self._now_ms)
        self.drop(cleaned)  # what could not be removed the last time
        try:
            self._write(cleaned, group)
        except Exception:
            with suppress(StorageError):
                self.drop(cleaned)
            raise
        return cleaned

    def _write(self, cleaned: DataSegment, group: Sequence[DataSegment]) -> None:
        with _Files(self._disk) as files, _Files(self._disk, CLEANED_SUFFIX) as written:
            for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                written.opened(cleaned.path(self._directory, suffix))
            cleaned.set_entries(0, 0, (-1, cleaned.base_offset))
            output = _Output(cleaned, self._directory, self._settings.index_interval_bytes, written)
            for segment in group:
                self._transactions.add(self._aborted_between(segment.base_offset, self._end_of(segment)))
                for batch in self._batches(segment, files, 0):
                    data = self._cleaned(batch)
                    if data is not None:
                        output.add(data)
                    if output.size_bytes >= self._io_bytes:
                        self._written(output.flush())
            self._written(output.flush())
            cleaned.finish(self._directory, written.opened)
            aborted = b"".join(map(encode_aborted, self._transactions.take_kept()))
            if aborted:
                written.opened(cleaned.path(self._directory, TRANSACTION_INDEX_SUFFIX)).write(0, aborted)
            written.sync()

    def drop(self, cleaned: DataSegment) -> None:
        """Remove what `clean` wrote: the log has changed meanwhile. Blocks."""
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
            self._disk.remove(cleaned.path(self._directory, suffix) + CLEANED_SUFFIX)

    def _end_of(self, segment: DataSegment) -> int:
        """Where the segment behind one begins."""
        bases = (one.base_offset for one in self._segments)
        return next((one for one in bases if one > segment.base_offset), self._log_end)

    def _aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records there; their entries may be in later segments.

        As in Kafka, also those that ended in the first segment before start: if their markers are not read,
        keys of their producer's next transaction are not noted, and more records stay.
        """
        return self._files.aborted(segments_from(self._segments, start), self._log_start, end)

    # --- batches ---

    def _batches(self, segment: DataSegment, files: _Files, position: int) -> Iterator[Batch]:
        path = segment.path(self._directory)
        file, end = files.opened(path), segment.end_position
        try:
            for batch in scan(file, position, end, chunk_bytes=self._io_bytes):
                yield batch
                self.read_bytes += batch.header.size_bytes
                self._pause(batch.header.size_bytes)
        except CorruptBatch as error:
            raise CorruptStorage(path, error.position, None, error.reason, REMEDY) from None

    def _written(self, size_bytes: int) -> None:
        self.written_bytes += size_bytes
        self._pause(size_bytes)

    def _cleaned(self, batch: Batch) -> bytes | memoryview | None:
        """What stays of a batch; None if nothing does."""
        header = batch.header
        horizon_ms = delete_horizon_ms(header)
        has_passed = horizon_ms is not None and horizon_ms <= self._now_ms
        is_empty_end = False
        if header.is_control:
            is_empty_end = self._transactions.is_empty_end(header, _is_commit(batch))
            goes = is_empty_end and has_passed
        else:
            goes = self._transactions.is_aborted(header)
        stays_empty = self._is_last_of_producer(header) or (
            header.next_offset == self.found.first_uncleanable
        )
        if goes:
            marks, count, has_tombstones = b"", 0, False
        elif header.is_control:
            marks, count = b"\1" * header.record_count, header.record_count
            has_tombstones = False
        else:
            marks, count, has_tombstones = self._keys.kept(batch, drops_tombstones=has_passed)
        if not count:
            return without_records(header) if stays_empty else None
        needs_horizon = (has_tombstones or is_empty_end) and horizon_ms is None
        if count == header.record_count and not needs_horizon:
            return batch.view
        if needs_horizon:
            horizon_ms = self._now_ms + self._settings.delete_retention_ms
        return with_records(batch, marks, horizon_ms)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Return whether a batch has the last sequence of a producer that is active, or its last epoch."""
        producer = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if producer is None:
            return False
        if producer.last_offset >= 0:
            return header.last_offset == producer.last_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch


def _is_commit(batch: Batch) -> bool | None:
    """Whether a marker commits; None for a control batch without a record. Raises CorruptBatch."""
    marker = read_end_marker(batch)
    return None if marker is None else marker.is_commit


class _Files:
    """Files of one cleaning: not the log's, which belong to the loop. They are closed at the end."""

    def __init__(self, disk: Disk, suffix: str = "") -> None:
        self._open_files = OpenFiles(disk, _OPEN_FILES)
        self._suffix = suffix
        self._paths: dict[str, None] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._open_files.close()

    def opened(self, path: str) -> File:
        path += self._suffix
        self._paths[path] = None
        return self._open_files.get(path, create=bool(self._suffix))

    def sync(self) -> None:
        """Make all that was written durable."""
        for path in self._paths:
            self._open_files.get(path).sync()


class _Output:
    """Appends batches to a cleaned segment, many with one write."""

    def __init__(self, segment: DataSegment, directory: str, interval_bytes: int, files: _Files) -> None:
        self._segment = segment
        self._directory = directory
        self._files = files
        self._index = segment.writable_index(interval_bytes, directory, files.opened)
        self._views: list[bytes | memoryview] = []
        self._position = 0
        self.size_bytes = 0  # of what is not written yet

    def add(self, data: bytes | memoryview) -> None:
        self._segment.add((parse_header(data),), self._index)
        self._views.append(data)
        self.size_bytes += len(data)

    def flush(self) -> int:
        """Write what was added; returns its size."""
        size_bytes = self.size_bytes
        if size_bytes:
            self._files.opened(self._segment.path(self._directory)).write_views(self._position, self._views)
            self._segment.spill(self._directory, self._files.opened)
        self._position += size_bytes
        self._views, self.size_bytes = [], 0
        return size_bytes
