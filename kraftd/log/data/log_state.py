"""What a log knows of itself, and what every change of it needs: its segments, epochs, tail and failure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from kraftd.log.data.log_files import LogFiles
from kraftd.log.data.resources import LogResources
from kraftd.log.data.segment import DataSegment, Opener
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import CorruptStorage, DiskFull, StorageError, StorageFailure
from kraftd.log.tail import Tail
from kraftd.types import Uuid
from kraftd.wire.batch import BatchHeader, CorruptBatch

T = TypeVar("T")


class LogState:
    """The state of a `DataLog`, whose docstring says what the fields mean. A step changes it there."""

    __slots__ = (
        "_appended",
        "_epochs",
        "_epochs_unwritten",
        "_failure",
        "_flush_limit",
        "_is_read",
        "_names_unsynced",
        "_resources",
        "_segments",
        "_tail",
        "cut_count",
        "flushed_ms",
        "log_end",
        "log_start",
        "name",
        "parent",
        "partition",
        "recovery_point",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        resources: LogResources,
        parent: str,
        topic: str,
        partition: int,
        settings: DataLogSettings,
        segments: list[DataSegment],
        *,
        log_start: int,
        log_end: int,
        recovery_point: int,
        now_ms: int,
        name: str | None = None,
        topic_id: Uuid | None = None,
        epochs: EpochCache | None = None,
    ) -> None:
        self.parent = parent
        self.topic = topic
        self.partition = partition
        self.name = name
        self.topic_id = topic_id
        self.settings = settings
        self.log_start = log_start
        self.log_end = log_end
        self.recovery_point = recovery_point
        self.flushed_ms = now_ms
        self.cut_count = 0  # how often the log was truncated: a read in a thread compares it
        self._resources = resources
        self._segments = segments.copy()  # one that was filled by appends has room for four
        self._epochs = epochs
        self._epochs_unwritten = epochs is not None
        self._appended: tuple[DataSegment, str] | None = None  # the segment of the last append, and its path
        self._tail: Tail | None = None
        self._is_read = (
            False  # until then its batches are not kept in memory: most followers are read by none
        )
        self._names_unsynced = epochs is not None or not segments  # by a truncation, a recovery, as a new log
        self._flush_limit = -1  # the end of what the running flush covers; -1: none runs
        self._failure: StorageError | None = None
        if len(segments) > 1:
            resources.rolled[self] = None

    def __repr__(self) -> str:
        return (
            f"<DataLog {self.topic}-{self.partition} {self.log_start}..{self.log_end}, "
            f"flushed to {self.recovery_point}, {len(self._segments)} segments>"
        )

    @property
    def directory(self) -> str:
        """The path of its directory."""
        return (
            f"{self.parent}/{self.topic}-{self.partition}"
            if self.name is None
            else f"{self.parent}/{self.name}"
        )

    @property
    def segments(self) -> Sequence[DataSegment]:
        """The segments, oldest first, to be read only."""
        return self._segments

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def is_empty(self) -> bool:
        """Return whether no segment has a byte, not even of records below the log start."""
        return len(self._segments) == 1 and not self._segments[0].end_position

    @property
    def size_bytes(self) -> int:
        return sum(segment.end_position for segment in self._segments)

    @property
    def tail_bytes(self) -> int:
        """The memory of its newest batches."""
        return 0 if self._tail is None else self._tail.kept_bytes

    @property
    def failure(self) -> StorageError | None:
        """Why every change is refused, if it is."""
        return self._failure

    @property
    def epochs(self) -> EpochCache:
        """The first offset of each leader epoch; change them by `assign_epoch` and the truncations."""
        if self._epochs is None:
            self._epochs = self._read_epochs()
        return self._epochs

    def load_epochs(self) -> None:
        """Read the leader epochs, in a thread: later the event loop waits for no disk."""
        self._epochs = self.epochs

    @property
    def opened(self) -> Opener:
        return self._resources.files.get

    @property
    def files(self) -> LogFiles:
        """Its files, to be read only."""
        return LogFiles(self._resources, self.directory)

    def largest_timestamp_ms(self, segment: DataSegment) -> int:
        """The largest timestamp of a segment; of one without any, when its file was last written. Raises
        StorageError.
        """
        directory = self.directory
        largest_ms = segment.max_time(directory, self.opened)[0]
        return self._resources.disk.modified_ms(segment.path(directory)) if largest_ms < 0 else largest_ms

    def segments_with_aborted(self, offset: int) -> list[DataSegment]:
        """The segments, from that of an offset on, in which transactions end that were aborted."""
        files = self.files
        return [one for one in self._segments[max(0, self._at(offset)) :] if files.has_aborted(one)]

    def snapshot_offsets(self) -> list[int]:
        """The offsets of the snapshots of producers, ascending."""
        return self.files.snapshot_offsets()

    def move_to(self, resources: LogResources, settings: DataLogSettings) -> None:
        """Belong to the logs of a broker: a thread made it, with resources of its own and older settings."""
        self._resources = resources
        self.settings = settings

    def evict_oldest(self) -> int:
        """Forget the oldest batch in memory; returns the bytes that it took. For the TailBudget."""
        tail = self._tail
        if tail is None:
            return 0
        freed = tail.evict_first()
        if not tail.kept_bytes:
            self._tail = None
        return freed

    def forget_tail(self) -> None:
        """Release the memory of its newest batches."""
        if self._tail is not None:
            self._resources.tails.released(self._tail.kept_bytes)
            self._tail = None

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise StorageFailure(
                f"the log in {self.directory} failed before: {self._failure}"
            ) from self._failure

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do work on files; a failure that is no full disk makes the log fail."""
        try:
            return work()
        except CorruptBatch as error:
            segment = self._segments[-1]
            remedy = "Restart the broker, which recovers the log"
            raise CorruptStorage(
                segment.path(self.directory), error.position, None, error.reason, remedy
            ) from None
        except (StorageError, FileNotFoundError) as error:
            raise self._failed_by(error) from None

    def _failed_by(self, error: StorageError | FileNotFoundError) -> StorageError:
        """Let the log fail, unless a disk is full or a place is damaged; return what to raise."""
        if isinstance(error, (DiskFull, CorruptStorage)):
            return error
        if isinstance(error, FileNotFoundError):
            error = StorageFailure(f"{error.filename or error} is gone. Check the disk and {self.parent}")
        self._failure = error
        return error

    def _at(self, offset: int) -> int:
        """The index of the segment that holds offset; -1 if all begin behind it."""
        segments = self._segments
        if len(segments) == 1:
            return 0 if offset >= segments[0].base_offset else -1
        return bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1

    def _keep(self, views: Sequence[bytes | memoryview], batches: Sequence[BatchHeader], end: int) -> None:
        """Keep a copy of appended batches in memory, as far as the budget of all logs allows."""
        tails, size_bytes = self._resources.tails, sum(map(len, views))
        if not tails.keeps(size_bytes):
            self.forget_tail()
            return
        tail = self._tail
        if tail is None:
            tail = self._tail = Tail(batches[0].base_offset)
        at, kept_bytes = 0, tail.kept_bytes
        if len(batches) == 1:
            tail.add(batches[0].base_offset, end, 0, bytes(views[0]) if len(views) == 1 else b"".join(views))
            tails.added(self, tail.kept_bytes - kept_bytes)
            return
        copied = memoryview(b"".join(views))
        freed: list[int] = []
        for batch in batches:
            tail.add(batch.base_offset, batch.last_offset + 1, 0, copied[at : at + batch.size_bytes])
            at += batch.size_bytes
            freed.append(tail.kept_bytes - kept_bytes)
            kept_bytes = tail.kept_bytes
        tail.end_offset = end
        for each in freed:
            tails.added(self, each)

    def _assign(self, epoch: int, start_offset: int) -> None:
        if epoch >= 0 and self.epochs.assign(epoch, start_offset):
            self._epochs_unwritten = True

    def _read_epochs(self) -> EpochCache:
        epochs = EpochCache(self.files.read_epochs() or ())
        epochs.truncate_from_end(self.log_end)
        epochs.truncate_from_start(self.log_start)
        return epochs

    def _has_epochs_on_disk(self) -> bool:
        """Return whether the file has the epochs of all records. One that begins at the log end may be
        missing: an opening forgets it.
        """
        of_records = EpochCache(self.epochs.entries)
        of_records.truncate_from_end(self.log_end)
        return self._read_epochs().entries == of_records.entries

    def _end_at(self, offset: int, written_end: int) -> None:
        self.cut_count += 1
        self._names_unsynced = True
        self._resources.cut.add(self)
        self._resources.uncheckpointed.add(self.parent)
        self.forget_tail()
        self.log_end = offset
        self.recovery_point = min(self.recovery_point, written_end)
        if self._flush_limit >= 0:
            self._flush_limit = min(self._flush_limit, written_end)

    def _new_segment(self, base_offset: int, now_ms: int) -> DataSegment:
        settings = self.settings
        jitter = min(settings.segment_jitter_ms, settings.segment_ms)
        return DataSegment(base_offset, now_ms, jitter_ms=self._resources.draw(jitter) if jitter > 0 else 0)
