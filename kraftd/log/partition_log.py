"""The log of one partition: appended in memory, written and synced by a thread of its own.

Changes such as append and truncate act in memory at once and queue the work for the disk in order. sync does
that work, so that all of it shares one fsync. Reads see appends at once. The owner decides where the log
starts. Opening is in `opening`, finding by time in `timestamps`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import EpochCache, encode_epochs
from kraftd.log.errors import CorruptStorage, DiskFull, StorageError, StorageFailure
from kraftd.log.kept_records import TRUNCATED_DIRECTORY, KeptRecords, Truncation
from kraftd.log.pending_writes import PendingWrites, Removal
from kraftd.log.segment import Segment, check_run, scan
from kraftd.log.settings import LogSettings
from kraftd.log.tail import Tail
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches

_SCAN_BYTES = 8 << 10


class OffsetOutOfRange(ValueError):
    """A read below the log start or past the log end."""


class PartitionLog:
    """See the module. One thread calls all methods but sync; another may call sync.

    Offsets: log_start is the first readable one, log_end the next to be written, synced_end the end of what
    survives a crash. start_epoch is the epoch of the record before log_start, 0 if there is none. After a
    failed write or sync every change raises StorageFailure; reads still work. last_truncation has the records
    that the last truncation dropped, None before the first; `kept` has their copies.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        segments: list[Segment],
        epochs: EpochCache,
        log_start: int,
        log_end: int,
        start_epoch: int = 0,
        tail: Tail | None = None,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.log_start = log_start
        self.log_end = log_end
        self.start_epoch = start_epoch
        self.epochs = epochs
        self.kept = KeptRecords(disk, f"{directory}/{TRUNCATED_DIRECTORY}")
        self.last_truncation: Truncation | None = None
        self._disk = disk
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._tail = Tail(log_end) if tail is None else tail
        kept = tail is not None and tail.kept_bytes > 0
        self._tail_limit_bytes = max(settings.tail_bytes, settings.replay_bytes if kept else 0)
        self._pending = PendingWrites()  # its lock also guards the fields that sync changes
        self._syncing = threading.Lock()
        self._synced_end = log_end
        self._lowest_truncation = log_end  # since the running sync began
        self._failure: StorageError | None = None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.log_start}..{self.log_end}, synced to {self._synced_end}, "
            f"{len(self._segments)} segments, epoch {self.last_epoch}>"
        )

    # --- its state ---

    @property
    def synced_end(self) -> int:
        return self._synced_end

    @property
    def size_bytes(self) -> int:
        return sum(segment.end_position for segment in self._segments)

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first, to be read only."""
        return self._segments

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def tail_bytes(self) -> int:
        """The bytes of the log that are in memory."""
        return self._tail.kept_bytes

    def bytes_from(self, offset: int) -> int:
        """The bytes of the log from an offset on, at most an index interval too many."""
        if not self.log_start <= offset < self.log_end:
            return 0
        first = bisect_right(self._bases, offset) - 1
        if offset >= self._tail.first_offset:
            position = self._tail.place(offset)[1]
        else:
            position = self._segments[first].index.lookup(offset)
        return sum(segment.end_position for segment in self._segments[first:]) - position

    def size_bytes_from(self, offset: int) -> int:
        """The bytes on disk if the log started at offset: whole segments, for they are deleted whole."""
        first = max(0, bisect_right(self._bases, offset) - 1)
        return sum(segment.end_position for segment in self._segments[first:])

    def position_near(self, offset: int) -> int:
        """The position, in its segment, of a batch at or before the one that holds offset."""
        return self._segment_of(offset).index.lookup(offset)

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of an empty log, that of the record before the log start."""
        if (latest := self.epochs.latest) is not None:
            return latest
        return self.start_epoch if self.log_start == self.log_end else 0

    # --- changes, durable after the next sync ---

    def append(self, data: bytes | memoryview) -> None:
        """Append whole batches that continue the log. Cheap: writes nothing to the disk.

        Raises CorruptBatch if they are invalid, and ValueError if they do not continue the log or go back in
        epochs. Raises StorageFailure if the log has failed; then nothing is appended.
        """
        self._check_alive()
        batches = list(iter_batches(data))
        expected, epoch, newest_ms = self.log_end, self.last_epoch, -1  # the newest timestamp
        for header, _, _ in batches:
            if header.base_offset != expected:
                raise ValueError(
                    f"a batch of offset {header.base_offset} cannot follow a log end of {expected}"
                )
            if header.leader_epoch < epoch:
                raise ValueError(f"a batch of epoch {header.leader_epoch} cannot follow epoch {epoch}")
            expected, epoch = header.next_offset, header.leader_epoch
            newest_ms = max(newest_ms, header.max_timestamp_ms)
        if not batches:
            return
        self._roll_for(len(data), expected - 1, newest_ms)
        segment, start = self._segments[-1], self._segments[-1].end_position
        whole = data if len(batches) == 1 else None
        begins_epoch = False
        for header, view, _ in batches:
            begins_epoch |= self.epochs.assign(header.leader_epoch, header.base_offset)
            position = segment.add(header)
            self._tail.add(
                header.base_offset, header.next_offset, position, whole if whole is not None else view
            )
        self._pending.write(segment, start, data)
        if begins_epoch:
            self._write_epochs(behind=segment)
        self.log_end = expected
        self._tail.evict(self._tail_limit_bytes, self._synced_end)

    def end_replay(self) -> None:
        """Evict batches beyond the settings' tail_bytes from memory, as far as they are on disk, now and at
        each append. Before, what opening has read stays for the replay.
        """
        self._tail_limit_bytes = self.settings.tail_bytes
        self._tail.evict(self._tail_limit_bytes, self._synced_end)

    def roll(self) -> None:
        """Begin a new segment at the log end, unless the last one is empty."""
        self._check_alive()
        closed = self._segments[-1]
        if closed.end_position == 0:
            return

        def close() -> None:
            closed.opened.sync()  # before the next segment gets its name: only the last may have a torn tail
            closed.write_indexes(self._disk)

        self._pending.add(close)
        self._start_segment(self.log_end)

    def batch_start(self, offset: int) -> int:
        """The base offset of the batch that holds offset: where a truncation to it ends the log.

        Raises ValueError for an offset outside of log_start to log_end; CorruptStorage.
        """
        if not self.log_start <= offset <= self.log_end:
            raise ValueError(f"cannot truncate to {offset} a log of {self.log_start} to {self.log_end}")
        return offset if offset == self.log_end else self._place(offset)[0]

    def copy_from(self, offset: int, kept: KeptRecords) -> Truncation | None:
        """Copy the records from an offset on, durably on return. Blocks. Raises StorageError."""
        self.sync()
        if offset >= self.log_end:
            return None
        found, copy = self._copy_of(offset, kept)
        copy()
        return found

    def truncate_to(self, offset: int) -> int:
        """Copy and drop the batch that holds offset and all later ones; returns the new log end.

        Raises ValueError for an offset outside of log_start to log_end; CorruptStorage.
        """
        self._check_alive()
        if self.batch_start(offset) == self.log_end:
            return offset
        end, position = self._place(offset)
        self.last_truncation, copy = self._copy_of(end, self.kept)
        keep = bisect_right(self._bases, end)
        removed = self._segments[keep:]
        del self._segments[keep:], self._bases[keep:]
        segment = self._segments[-1]
        loses_time = segment.index.truncate(end, position)
        segment.end_position = position
        if position == 0:
            segment.first_timestamp_ms = None
        if self.epochs.truncate_from_end(end):
            self._write_epochs()

        def cut() -> None:
            copy()
            # Indexes on disk prove to the next start that records were synced: they must not outlive them.
            segment.remove_indexes(self._disk)
            # Newest first, so that a crash leaves a prefix of the log. The cut is synced before anything is
            # written behind it, so that pieces of old batches never follow new ones.
            for each in reversed(removed):
                self._remove_segment(each)
            self._disk.sync_directory(self.directory)
            segment.opened.truncate(position)
            segment.opened.sync()

        self._pending.add(cut)
        self._end_at(end, min(self._synced_end, end))
        if loses_time:
            self._find_largest_timestamp(segment)
        return end

    def truncate_fully_to(self, offset: int, epoch: int, keep_from: int | None = None) -> None:
        """Drop the whole log. It then starts and ends at offset, after a record of epoch that is durable
        elsewhere. The records from keep_from on are copied first; None for none.
        """
        self._check_alive()
        if keep_from is not None and max(keep_from, self.log_start) < self.log_end:
            self.last_truncation, copy = self._copy_of(max(keep_from, self.log_start), self.kept)
            self._pending.add(copy)
        removed = list(self._segments)
        self._segments.clear()
        self._bases.clear()
        self.epochs.clear()

        def clear() -> None:
            # Newest first: a crash leaves a prefix of the log, older than the snapshot, so the next start
            # drops it.
            for each in reversed(removed):
                self._remove_segment(each)

        self._pending.add(clear)
        self._start_segment(offset)
        self._write_epochs()
        self.log_start, self.start_epoch = offset, epoch
        self._end_at(offset, offset)

    def delete_before(self, offset: int) -> bool:
        """Let the log start at offset and drop the segments wholly below it.

        Returns False, and changes nothing, if the log already starts there or later, or ends before.
        """
        self._check_alive()
        if not self.log_start < offset <= self.log_end:
            return False
        epoch = self.epochs.epoch_of(offset - 1)
        self.log_start, self.start_epoch = offset, 0 if epoch is None else epoch
        keep = bisect_right(self._bases, offset) - 1
        removed = self._segments[:keep]
        del self._segments[:keep], self._bases[:keep]
        if self.epochs.truncate_from_start(offset):
            self._write_epochs()

        def remove() -> None:
            for each in removed:
                self._remove_segment(each)

        if removed:
            self._pending.add(Removal(removed, remove))
        return True

    # --- for the syncing thread ---

    def sync(self) -> int:
        """Do the queued work and make it durable; returns synced_end. Blocks: run it off the event loop.

        Raises DiskFull: nothing is lost, reads go on, and it may be called again once there is space. Raises
        StorageFailure: the log can then only be read, and the process should end.
        """
        with self._syncing:
            with self._pending.lock:
                self._check_alive()
                pieces = self._pending.take()
                end = self._lowest_truncation = self.log_end
            try:
                self._pending.perform(pieces)
            except DiskFull:
                raise
            except BaseException as error:
                failure = (
                    error
                    if isinstance(error, StorageError)
                    else StorageFailure(f"{self.directory}: {error!r}")
                )
                with self._pending.lock:
                    self._failure = failure
                if isinstance(error, StorageError) or not isinstance(error, Exception):
                    raise
                raise failure from error
            with self._pending.lock:
                self._synced_end = max(self._synced_end, min(end, self._lowest_truncation))
                return self._synced_end

    def close(self) -> None:
        """Sync, write the indexes, close the files. With a failed log, only close them."""
        try:
            if self._failure is None:
                self.sync()
                self._segments[-1].write_indexes(self._disk)
        finally:
            for segment in self._segments:
                if segment.file is not None:
                    segment.file.close()

    # --- reads ---

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes | memoryview:
        """Whole batches from the one that holds offset on: at least one, as many as fit into max_bytes and
        into a segment.

        No batch reaches past end_offset (None: the log end); at or past it the result is empty. Raises
        OffsetOutOfRange, CorruptStorage.
        """
        # Kafka's followers append a fetch's records at once, and fail if they exceed a segment.
        max_bytes = min(max_bytes, self.settings.segment_bytes)
        end_offset = self.log_end if end_offset is None else min(end_offset, self.log_end)
        if not self.log_start <= offset <= self.log_end:
            raise OffsetOutOfRange(f"offset {offset} is not in {self.log_start} to {self.log_end}")
        if offset >= end_offset:
            return b""
        if offset >= self._tail.first_offset:
            return self._tail.read(offset, max_bytes, end_offset)
        segment = self._segment_of(offset)
        _, start = self._place_on_disk(segment, offset)
        limit = self._written_position(segment)
        if end_offset < self._tail.first_offset and self._segment_of(end_offset) is segment:
            _, limit = self._place_on_disk(segment, end_offset)
        if limit <= start:
            return b""
        stop = limit
        if limit - start > max_bytes:
            # The index has the positions of batches, so only the last few batches are examined.
            stop = segment.index.position_below(start, start + max_bytes)
            for header, _, position in self._scan(segment, stop):
                end = position + header.size_bytes
                if position > start and end > start + max_bytes:
                    break
                stop = end
        data = segment.opened.read(start, stop - start)
        self._check_read(segment, data, start, offset)
        return data

    # --- inside ---

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise StorageFailure(
                f"the log in {self.directory} failed before: {self._failure}"
            ) from self._failure

    def _end_at(self, end: int, synced_end: int) -> None:
        with self._pending.lock:
            self.log_end = end
            self._synced_end = synced_end
            self._lowest_truncation = min(self._lowest_truncation, end)
        if end > self._tail.first_offset:
            self._tail.truncate(end)
        else:
            self._tail = Tail(end)

    def _copy_of(self, offset: int, kept: KeptRecords) -> tuple[Truncation, Callable[[], None]]:
        """The end of the log from the batch on that holds an offset, and the work that copies it."""
        start, position = self._place(offset)
        first, last = self.epochs.epoch_of(start), self.last_epoch
        path = kept.new_path(start, self.log_end, last)
        segments = self._segments[bisect_right(self._bases, start) - 1 :]
        sources = [(segment, 0 if at else position) for at, segment in enumerate(segments)]
        found = Truncation(start, self.log_end, last if first is None else first, last, path)
        return found, lambda: kept.write(path, [(each.opened, begin) for each, begin in sources])

    def _roll_for(self, size_bytes: int, last_offset: int, timestamp_ms: int) -> None:
        segment, settings = self._segments[-1], self.settings
        if segment.is_full_for(
            size_bytes, last_offset, timestamp_ms, settings.segment_bytes, settings.segment_ms
        ):
            self.roll()

    def _start_segment(self, base_offset: int) -> None:
        segment = Segment(self.directory, base_offset, self.settings.index_interval_bytes)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self._pending.add(lambda: segment.create(self._disk))

    def _remove_segment(self, segment: Segment) -> None:
        self._pending.forget(segment)
        if segment.file is not None:
            segment.file.close()
        segment.remove(self._disk)

    def _write_epochs(self, behind: Segment | None = None) -> None:
        """Queue the write of the epochs; `behind` a segment's records, so that the file proves that they were
        synced.
        """
        content = encode_epochs(self.epochs.entries)

        def write() -> None:
            if behind is not None:
                behind.opened.sync()
            write_atomically(self._disk, f"{self.directory}/{EPOCHS_FILE_NAME}", content)

        self._pending.add(write)

    def _remove_files(self, remove: Callable[[], None]) -> None:
        """Queue the deletion of files that are no longer needed, other than segments."""
        self._pending.add(Removal([], remove))

    def _segment_of(self, offset: int) -> Segment:
        return self._segments[bisect_right(self._bases, offset) - 1]

    def _find_largest_timestamp(self, segment: Segment) -> None:
        """Search the batches that a truncation left after the last index entry."""
        last = segment.index.last_entry
        start = max(segment.base_offset if last is None else last[0] + 1, self.log_start)
        while start < self.log_end:
            for header, _, _ in iter_batches(self.read(start, _SCAN_BYTES), verify=False):
                segment.index.saw(header)
                start = header.next_offset

    def _written_position(self, segment: Segment) -> int:
        """The end of the bytes that may be read from a segment's file: the tail's may not be written yet."""
        first = self._tail.first_offset
        if first < self.log_end and self._segment_of(first) is segment:
            return self._tail.first_position
        return segment.end_position

    def _scan(self, segment: Segment, position: int) -> Iterator[Batch]:
        end = self._written_position(segment)
        try:
            yield from scan(segment.opened, position, end, verify=False, chunk_bytes=_SCAN_BYTES)
        except CorruptBatch as error:
            raise self._corrupt(segment, error.position, None, error.reason) from None

    def _check_read(self, segment: Segment, data: bytes, start: int, offset: int) -> None:
        """Verify batches read from the disk, so that only what was written is returned: bytes on a disk may
        change, and a closed segment was opened by its index. Raises CorruptStorage.
        """
        try:
            check_run(data, offset)
        except CorruptBatch as error:
            raise self._corrupt(segment, start + error.position, offset, error.reason) from None

    def _corrupt(self, segment: Segment, position: int, offset: int | None, reason: str) -> CorruptStorage:
        return CorruptStorage(
            segment.path(),
            position,
            offset,
            reason,
            "Restore the file, or move the directory aside and let this node catch up from the leader",
        )

    def _place(self, offset: int) -> tuple[int, int]:
        """(base offset, position) of the batch that holds an offset below the log end. Raises
        CorruptStorage.
        """
        if offset >= self._tail.first_offset:
            return self._tail.place(offset)
        return self._place_on_disk(self._segment_of(offset), offset)

    def _place_on_disk(self, segment: Segment, offset: int) -> tuple[int, int]:
        """(base offset, position) of the batch that holds offset. Raises CorruptStorage."""
        for header, _, position in self._scan(segment, segment.index.lookup(offset)):
            if header.next_offset > offset:
                if header.base_offset > offset:
                    found = f"a batch of offset {header.base_offset} where one of {offset} or less belongs"
                    raise self._corrupt(segment, position, offset, found)
                return header.base_offset, position
        return offset, self._written_position(segment)
