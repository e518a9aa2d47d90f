"""The log of an ordinary partition: written at once, flushed later, by a thread.

An append is one write on the event loop; what it returns is in the page cache and outlives the process. A
flush makes it outlive the machine, and moves the recovery point: an unclean start reads what is past it.
Nothing here judges: the partition decides what is appended, and where the log is truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kraftd.log.data.flushing import FlushJob
from kraftd.log.data.log_state import LogState
from kraftd.log.data.reading import ColdRead
from kraftd.log.data.segment import SPILL_ENTRIES, DataSegment
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.disk import File
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import encode_epochs
from kraftd.log.errors import DiskFull, StorageError
from kraftd.log.partition_log import OffsetOutOfRange
from kraftd.log.partition_metadata import FILE_NAME as METADATA_FILE_NAME
from kraftd.log.segment import (
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from kraftd.types import Uuid
from kraftd.wire.batch import BatchHeader
from kraftd.wire.producer_snapshot import SnapshotEntry


class DataLog(LogState):
    """See the module. One thread, the event loop's, calls all methods; `FlushJob.run` and `ColdRead.run` are
    for others.

    log_start is the first readable offset, log_end the next to be written, recovery_point the end of what a
    loss of power leaves. After a failure that is no full disk every change raises StorageFailure.
    """

    __slots__ = ()

    # --- appends ---

    def has_room(
        self, size_bytes: int, batch_count: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> bool:
        """Return whether batches of that size together go into the segment that has records already."""
        segment = self._segments[-1]
        return segment.end_position > 0 and not segment.is_full_for(
            size_bytes, last_offset, max_timestamp_ms, now_ms, self.settings, self, batch_count
        )

    def append(
        self,
        views: Sequence[bytes | memoryview],
        batches: Sequence[BatchHeader],
        now_ms: int,
        producers: Callable[[], Iterable[SnapshotEntry]] | None = None,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> bool:
        """Write whole verified batches at the end; returns whether a new segment was begun for them.

        batches are their headers, views their bytes in order, copied if they are kept. producers gives the
        state before them, for the snapshot of a new segment. aborted are the transactions whose markers are
        among them. Raises ValueError for batches that lie before the log end or each other, or that exceed a
        segment. Raises DiskFull: nothing is appended, and a later append may succeed. Raises StorageFailure.
        """
        if self._failure is not None:
            self._check_alive()
        size_bytes = len(views[0]) if len(views) == 1 else sum(map(len, views))
        end, max_timestamp_ms = self.log_end, -1
        for batch in batches:
            if batch.base_offset < end:
                raise ValueError(f"a batch of offset {batch.base_offset} cannot follow a log end of {end}")
            end = batch.base_offset + batch.last_offset_delta + 1
            if batch.max_timestamp_ms > max_timestamp_ms:
                max_timestamp_ms = batch.max_timestamp_ms
        if size_bytes > self.settings.segment_bytes:
            raise ValueError(
                f"batches of {size_bytes} bytes exceed a segment of {self.settings.segment_bytes}"
            )
        if not batches:
            return False
        segment = self._segments[-1]
        rolled = segment.is_full_for(size_bytes, end - 1, max_timestamp_ms, now_ms, self.settings, self)
        if rolled:
            self.roll(now_ms, producers, batches[0].base_offset)
            segment = self._segments[-1]
            if end - 1 - segment.base_offset > MAX_RELATIVE_OFFSET:
                raise ValueError("the batches are too far apart for a segment; append them one by one")
        index = segment.index or self._guarded(
            lambda: segment.writable_index(self.settings.index_interval_bytes, self.directory, self.opened)
        )
        self._write(segment, views, batches[0].base_offset, aborted)
        epoch = -1
        for batch in batches:
            if batch.leader_epoch != epoch:
                epoch = batch.leader_epoch
                self._assign(epoch, batch.base_offset)
        segment.add(batches, index)
        if self._is_read:
            self._keep(views, batches, end)
        self.log_end = end
        if len(index.offsets) >= SPILL_ENTRIES:
            self._guarded(lambda: segment.spill(self.directory, self.opened))
        if rolled or end - self.recovery_point >= self.settings.flush_messages:
            self._resources.unflushed[self] = None
        return rolled

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin at start_offset; the file has it with the next flush."""
        self._check_alive()
        self._assign(epoch, start_offset)

    def roll(
        self,
        now_ms: int,
        producers: Callable[[], Iterable[SnapshotEntry]] | None = None,
        base_offset: int | None = None,
    ) -> bool:
        """Begin a segment at base_offset, at least the log end. Returns False if the last one is empty and
        begins there. Raises StorageError.
        """
        self._check_alive()
        base_offset = self.log_end if base_offset is None else max(base_offset, self.log_end)
        closed = self._segments[-1]
        if closed.base_offset >= base_offset:
            return False
        directory = self.directory
        segment = self._new_segment(base_offset, now_ms)

        def begin() -> None:
            closed.finish(directory, self.opened)
            self.files.create(segment)

        self._guarded(begin)
        self._segments.append(segment)
        self._resources.rolled[self] = None
        if producers is not None:
            self.write_snapshot(base_offset, producers())
        self._resources.unflushed[self] = None
        return True

    # --- flushes ---

    def begin_flush(self, *, whole: bool = False) -> FlushJob | None:
        """The work that makes the log durable up to its end, for a thread; None if there is none, or if a
        flush runs already. `end_flush` must follow. Unless `whole`, an empty last segment is left out.

        Raises StorageError.
        """
        self._check_alive()
        self._resources.unflushed.pop(self, None)
        end = self.log_end
        if self._flush_limit >= 0 or not (
            whole or end > self.recovery_point or self._epochs_unwritten or self._names_unsynced
        ):
            return None
        directory, since = self.directory, self.recovery_point
        first = max(0, self._at(since))
        touched = [each for each in self._segments[first:] if whole or each.base_offset < end]
        files = []
        replaced = []
        if self._epochs_unwritten:
            replaced.append((f"{directory}/{EPOCHS_FILE_NAME}", encode_epochs(self.epochs.entries)))
            self._epochs_unwritten = False
        for segment in touched:
            self._guarded(lambda each=segment: each.spill(directory, self.opened))  # type: ignore[misc]
            suffixes = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
            files += [segment.path(directory, suffix) for suffix in suffixes]
            files.append(segment.path(directory, PRODUCER_SNAPSHOT_SUFFIX))
        begun = self._names_unsynced or any(segment.base_offset >= since for segment in touched)
        if begun:
            files.append(f"{directory}/{METADATA_FILE_NAME}")
        self._flush_limit = end
        first_names = (directory,) if self._names_unsynced else ()
        self._names_unsynced = False
        last_names = (directory, self.parent) if begun else ()
        return FlushJob(self._resources.disk, end, first_names, replaced, files, last_names)

    @property
    def is_flushing(self) -> bool:
        """Return whether a flush is under way. It knows the files by their present names."""
        return self._flush_limit >= 0

    def end_flush(self, job: FlushJob, now_ms: int, failure: StorageError | None = None) -> None:
        """Account for a flush that ended: the recovery point moves, or the log fails (but for DiskFull)."""
        limit, self._flush_limit = self._flush_limit, -1
        if failure is not None:
            self._epochs_unwritten |= bool(job.replaced)
            self._names_unsynced |= bool(job.names_first)
            if not isinstance(failure, DiskFull):
                self._failure = failure
            return
        self.recovery_point = max(self.recovery_point, min(job.end_offset, limit))
        self._resources.uncheckpointed.add(self.parent)
        self.flushed_ms = now_ms

    def flush(self, now_ms: int, *, whole: bool = False) -> None:
        """Flush at once, for a caller that may block. Raises StorageError."""
        self._run_flush(self.begin_flush(whole=whole), now_ms)

    def _run_flush(self, job: FlushJob | None, now_ms: int) -> None:
        if job is None:
            return
        try:
            job.run()
        except StorageError as error:
            self.end_flush(job, now_ms, error)
            raise
        self.end_flush(job, now_ms)

    def is_flush_due(self, now_ms: int) -> bool:
        """Return whether flush.ms has passed since the last flush of a log with unflushed records."""
        return self.log_end > self.recovery_point and now_ms - self.flushed_ms >= self.settings.flush_ms

    def begin_close(
        self, now_ms: int, producers: Callable[[], Iterable[SnapshotEntry]] | None = None
    ) -> FlushJob | None:
        """Write the producers and the rest of the indexes, as at a clean stop; returns the work that flushes
        all, for a thread, if there is any. `end_flush` and `close_files` must follow. Raises StorageError.
        """
        if self._failure is not None:
            return None
        snapshots = []
        if producers is not None and self.log_end and not self._has_snapshot(self.log_end):
            self.write_snapshot(self.log_end, producers())
            snapshots.append(self.files.snapshot_path(self.log_end))
        self._segments[-1].finish(self.directory, self.opened)
        self._flush_limit = -1  # nothing accounts for a flush that still runs
        if not self.log_end and self.cut_count <= 1:
            return None  # of an empty log, nothing is lost with its names; its epochs are made anew
        if self._epochs_unwritten and self.log_end <= self.recovery_point and self._has_epochs_on_disk():
            self._epochs_unwritten = False
        job = self.begin_flush(whole=self.log_end > self.recovery_point)
        if snapshots:
            job = job or FlushJob(self._resources.disk, self.log_end, (), (), (), ())
            job = job._replace(files=[*job.files, *snapshots])
        return job

    def close(self, now_ms: int, producers: Callable[[], Iterable[SnapshotEntry]] | None = None) -> None:
        """Close the log as at a clean stop. Blocks. Raises StorageError."""
        self._run_flush(self.begin_close(now_ms, producers), now_ms)
        self.close_files()

    def close_files(self) -> None:
        """Close its files; a later call opens them again."""
        self._resources.files.forget_below(self.directory)

    # --- reads ---

    def read_tail(self, offset: int, max_bytes: int, end_offset: int) -> bytes | memoryview | None:
        """What `read` returns, if it is in memory; else None."""
        tail = self._tail
        if tail is None or offset < tail.first_offset:
            return None
        return (
            b""
            if offset >= end_offset or offset >= self.log_end
            else tail.read(offset, max_bytes, end_offset)
        )

    def bytes_between(self, offset: int, end_offset: int) -> int:
        """The bytes of the batches from an offset up to another, at most an index interval too many; for an
        end below the log end, what is behind it may count too. 0 without records.
        """
        if offset >= end_offset:
            return 0
        tail = self._tail
        if tail is not None and offset >= tail.first_offset:
            return tail.bytes_between(offset, end_offset)
        first = max(0, self._at(offset))
        segments = self._segments[first:]
        return (
            sum(each.end_position for each in segments)
            - segments[0].place(offset, self.directory, self.opened)[1]
        )

    def are_apart(self, offset: int, end_offset: int) -> bool:
        """Return whether an offset is in an older segment than an end at or behind it."""
        # Most readers are at the end.
        return offset < self._segments[-1].base_offset and self._at(offset) < self._at(end_offset)

    def batch_bytes(self, offset: int) -> int:
        """The size of the batch that holds an offset, or follows it; 0 if it is not in memory."""
        tail = self._tail
        return 0 if tail is None or offset < tail.first_offset else tail.batch_bytes(offset)

    def read(
        self, offset: int, max_bytes: int, end_offset: int | None = None, *, cached_only: bool = False
    ) -> bytes | memoryview | None:
        """Whole batches from the one that holds offset, or follows it, on: at least one, as many as fit into
        max_bytes, and into a segment if they are not in memory; none that reaches past end_offset. Empty if
        there is none.

        With cached_only: None if the disk would be waited for, or much would be copied from the page cache.
        `cold_read` then reads in a thread. Raises OffsetOutOfRange, CorruptStorage.
        """
        self._is_read = True
        end_offset = self.log_end if end_offset is None else min(end_offset, self.log_end)
        if not self.log_start <= offset <= self.log_end:
            raise OffsetOutOfRange(f"offset {offset} is not in {self.log_start} to {self.log_end}")
        if offset >= end_offset:
            return b""
        found = self.read_tail(offset, max_bytes, end_offset)
        if found is not None:
            return found
        return self.cold_read(offset, max_bytes, end_offset).read(self.opened, cached_only=cached_only)

    def cold_read(self, offset: int, max_bytes: int, end_offset: int) -> ColdRead:
        """A read for a thread, of offsets that `read` accepts."""
        # Kafka's followers append the records of an answer at once, and fail if they exceed a segment.
        return ColdRead(
            self._segments[max(0, self._at(offset)) :],
            self.directory,
            self.settings.index_interval_bytes,
            self.cut_count,
            offset,
            min(max_bytes, self.settings.segment_bytes),
            min(end_offset, self.log_end),
            self.log_end,
            self._segments[-1].end_position,
            self.epochs,
        )

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from start_offset to before end_offset, by their ends.

        Raises CorruptStorage.
        """
        return self.files.aborted(self.segments_with_aborted(start_offset), start_offset, end_offset)

    # --- truncation and deletion ---

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Drop the batch that holds offset and all later ones: the log then ends at offset. Returns False if
        it ends there or before. Raises StorageError, CorruptStorage.
        """
        self._check_alive()
        if offset >= self.log_end:
            if self.epochs.truncate_from_end(self.log_end):
                self._epochs_unwritten = True
            return False
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        kept = self._at(offset) + 1
        removed = self._segments[: kept - 1 : -1]  # newest first: a crash leaves a prefix of the log
        segment, directory = self._segments[kept - 1], self.directory
        due_ms = now_ms + self.settings.file_delete_delay_ms

        first_dropped, position = self._guarded(lambda: self.files.place_of(segment, offset))

        def cut() -> None:
            self.files.retire(removed, due_ms)
            interval_bytes = self.settings.index_interval_bytes
            segment.truncate(offset, position, now_ms, interval_bytes, directory, self.opened)
            self.files.cut_aborted(segment, offset)
            self.files.remove_snapshots_behind(offset)

        self._end_at(offset, min(offset, first_dropped))
        del self._segments[kept:]
        self._guarded(cut)
        if self.epochs.truncate_from_end(offset):
            self._epochs_unwritten = True
        self.log_start = min(self.log_start, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int, log_start: int | None = None) -> None:
        """Drop the whole log. It then ends at offset, and starts at log_start or there.

        Raises StorageError.
        """
        self._check_alive()
        removed = self._segments[::-1]
        segment = self._new_segment(offset, now_ms)
        self._end_at(offset, offset)

        def clear() -> None:
            self.files.retire(removed, now_ms + self.settings.file_delete_delay_ms)
            if removed:
                self.files.remove_snapshots_behind(-1)
            self.files.create(segment)

        self._guarded(clear)
        self._segments = [segment]
        self.epochs.clear()
        self._epochs_unwritten = True
        self.log_start = offset if log_start is None else log_start

    def increment_log_start(self, offset: int) -> bool:
        """Let the log start at offset; the caller has checked that it is at most the high watermark. Returns
        False if it starts there or later. `retention` removes the segments below.
        """
        self._check_alive()
        if not self.log_start < offset <= self.log_end:
            return False
        self.log_start = offset
        self._resources.uncheckpointed.add(self.parent)
        if self.epochs.truncate_from_start(offset):
            self._epochs_unwritten = True
        return True

    def remove_oldest(self, count: int, now_ms: int) -> None:
        """Remove that many of the oldest segments, now by name and later by content, and let the log start
        behind them. One segment must stay. Raises StorageError.
        """
        self._check_alive()
        removed = self._segments[:count]
        self.increment_log_start(min(self._segments[count].base_offset, self.log_end))
        del self._segments[:count]
        self._resources.uncheckpointed.add(self.parent)  # a log start at a segment's beginning is not written
        due_ms = now_ms + self.settings.file_delete_delay_ms
        self._guarded(lambda: self.files.retire(removed, due_ms))

    def replace_segments(self, replaced: Sequence[DataSegment], cleaned: DataSegment, now_ms: int) -> bool:
        """Let a segment that a cleaning has written durably as `.cleaned` take the place of some. Returns
        False if they are not there any more, as after a truncation. Raises StorageError.
        """
        self._check_alive()
        first = self._at(cleaned.base_offset)
        after = first + len(replaced)
        if first < 0 or after >= len(self._segments) or self._segments[first:after] != list(replaced):
            return False
        due_ms = now_ms + self.settings.file_delete_delay_ms
        self._guarded(lambda: self.files.swap_in(cleaned, replaced, due_ms))
        self._segments[first:after] = [cleaned]
        if self._tail is not None and self._tail.first_offset < self._segments[first + 1].base_offset:
            self.forget_tail()  # it has records that were cleaned away
        self.cut_count += 1  # a thread may have read from files that have gone
        self._names_unsynced = True
        self._resources.unflushed[self] = None
        return True

    def renamed(self, name: str | None) -> None:
        """Account for a directory that was renamed; None for the name of topic and partition."""
        self._resources.files.forget_below(self.directory)
        self.name, self._appended = name, None

    def fail(self, failure: StorageError) -> None:
        """Refuse every change from now on, because the directory failed."""
        self._failure = self._failure or failure
        self.close_files()

    # --- snapshots of producers and the topic id ---

    def write_snapshot(self, offset: int, entries: Iterable[SnapshotEntry]) -> None:
        """Write the producers as they are before offset. Raises StorageError."""
        self._guarded(lambda: self.files.write_snapshot(offset, entries))

    def _has_snapshot(self, offset: int) -> bool:
        return self._resources.disk.exists(self.files.snapshot_path(offset))

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write the topic id of a log that has none. Raises ValueError for another one, StorageError."""
        if self.topic_id is None:
            self._guarded(lambda: self.files.write_topic_id(topic_id))
            self.topic_id = topic_id
        elif self.topic_id != topic_id:
            raise ValueError(f"{self.directory} belongs to another topic of that name")
        else:
            self.topic_id = topic_id  # the same bytes for all partitions of a topic

    # --- inside ---

    def _write(
        self,
        segment: DataSegment,
        views: Sequence[bytes | memoryview],
        base_offset: int,
        aborted: Sequence[AbortedTransaction],
    ) -> None:
        if self._appended is None or self._appended[0] is not segment:
            self._appended = segment, segment.path(self.directory)
        try:
            file: File = self._resources.files.get(self._appended[1])
        except (StorageError, FileNotFoundError) as error:
            raise self._failed_by(error) from None
        try:
            if aborted:
                self._guarded(lambda: self.files.append_aborted(segment, aborted))
            file.write_views(segment.end_position, views)
        except DiskFull:
            # Nothing of it may stay: a shorter append would leave its end behind itself.
            self._guarded(lambda: file.truncate(segment.end_position))
            if aborted:
                self._guarded(lambda: self.files.cut_aborted(segment, base_offset))
            raise
        except StorageError as error:
            self._failure = error
            raise
