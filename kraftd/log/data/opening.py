"""Opens the log of an ordinary partition, in slices that each take a few milliseconds.

After a clean stop the files are trusted: the end of the log follows from the last index entry. Else what is
past the recovery point is read and checked. The state of the producers is loaded from the newest snapshot and
from the batches behind it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.log_files import LogFiles
from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.recovery import SLICE_BATCHES, ProducerReplay, SegmentRecovery
from kraftd.log.data.resources import LogResources
from kraftd.log.data.segment import DataSegment, last_header
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.transaction_index import decode_aborted
from kraftd.log.disk import File
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.log.opening import RecoveryReport, sweep_segments
from kraftd.log.partition_metadata import FILE_NAME as METADATA_FILE_NAME
from kraftd.log.partition_metadata import decode_topic_id, is_torn
from kraftd.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_of_name,
    scan,
    segment_name,
)
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.producer_snapshot import (
    CorruptSnapshot,
    SnapshotEntry,
    decode_producers,
)

T = TypeVar("T")

_OPEN_FILES = 8


class Opened(NamedTuple):
    """An opened log, and sentences for the process log about what was repaired."""

    log: DataLog
    notes: list[str]


class Found(NamedTuple):
    """What checkpoints and marker of a log directory say of a log."""

    log_start: int = 0
    recovery_point: int = 0
    clean: bool = False


def finish(slices: Generator[None, None, T]) -> T:
    """Do all slices at once, for a caller that may block."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            result: T = stop.value
            return result


def create_data_log(
    resources: LogResources,
    parent: str,
    topic: str,
    partition: int,
    settings: DataLogSettings,
    *,
    now_ms: int,
    topic_id: Uuid | None,
    name: str | None = None,
) -> DataLog:
    """Make the directory of a new log, with its first segment. As in Kafka, its names become durable with its
    first flush. Raises StorageError.
    """
    log = DataLog(
        resources, parent, topic, partition, settings, [], log_start=0, log_end=0, recovery_point=0,
        now_ms=now_ms, name=name,
    )  # fmt: skip
    resources.disk.make_directory(log.directory, durably=False)
    log.truncate_fully_and_start_at(0, now_ms)
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    resources.cut.discard(log)  # it has no checkpoint yet
    return log


def open_data_log(
    resources: LogResources,
    parent: str,
    topic: str,
    partition: int,
    settings: DataLogSettings,
    found: Found,
    *,
    now_ms: int,
    name: str | None = None,
    producers: ProducerReplay | None = None,
) -> Generator[None, None, Opened]:
    """Open the log of a directory; a slice ends at each yield, and `finish` does all of them.

    producers gets the partition's state. Raises CorruptStorage for flushed records that are gone or cannot be
    passed, DirectoryProblem for a topic id that cannot be read, StorageError.
    """
    directory = f"{parent}/{topic}-{partition}" if name is None else f"{parent}/{name}"
    opening = _Opening(resources, directory, settings, found, now_ms, producers)
    yield from opening.run()
    log = DataLog(
        resources, parent, topic, partition, settings, opening.segments, log_start=opening.log_start,
        log_end=opening.log_end, recovery_point=opening.recovery_point, now_ms=now_ms, name=name,
        topic_id=opening.topic_id, epochs=opening.epochs,
    )  # fmt: skip
    if not opening.segments:
        log.truncate_fully_and_start_at(opening.log_start, now_ms)
    log.load_epochs()
    return Opened(log, opening.report.notes)


def _of_transaction_index(name: str) -> int:
    """The base offset of a transaction index; -1 of another file."""
    base_offset = offset_of_name(name) if name.endswith(TRANSACTION_INDEX_SUFFIX) else None
    return -1 if base_offset is None else base_offset


class _Opening:
    """See `open_data_log`. epochs is None unless a recovery has changed or checked them."""

    def __init__(
        self,
        resources: LogResources,
        directory: str,
        settings: DataLogSettings,
        found: Found,
        now_ms: int,
        producers: ProducerReplay | None,
    ) -> None:
        self.report = RecoveryReport()
        self.segments: list[DataSegment] = []
        self.log_start = found.log_start
        self.log_end = 0
        self.recovery_point = 0
        self.topic_id: Uuid | None = None
        self.epochs: EpochCache | None = None
        self._resources = resources
        self._disk = resources.disk
        self._open_files = OpenFiles(resources.disk, _OPEN_FILES)  # a thread may open this log
        self._files = LogFiles(resources, directory)
        self._directory = directory
        self._settings = settings
        self._found = found
        self._now_ms = now_ms
        self._producers = producers
        self._snapshots: list[int] = []
        self._lost_snapshots = False  # some were damaged, or of records that are gone

    def _opened(self, path: str) -> File:
        return self._open_files.get(path)

    def run(self) -> Iterator[None]:
        try:
            yield from self._load()
        finally:
            self._open_files.close()

    def _load(self) -> Iterator[None]:
        names = sweep_segments(self._disk, self._directory, self.report)
        self.topic_id = self._read_topic_id(names)
        unsound = self._find_segments(names)
        self._remove_stray_snapshots(names)
        if not self.segments or (self._found.clean and self.segments[-1].base_offset not in unsound):
            self.log_end = self._end_of_last()
            if self.log_end < 0:
                unsound.add(self.segments[-1].base_offset)
        first = self._first_to_recover(unsound)
        if first is not None:
            yield from self._recover(first, unsound)
        elif self._producers is not None:
            self._load_snapshot(self.log_end)
        yield
        self._settle_ends()
        if self._producers is not None:
            yield from self._replay_rest()
            if self.epochs is not None or self._lost_snapshots:  # batches were replayed whatever their age
                self._producers.expire()

    def _find_segments(self, names: list[str]) -> set[int]:
        """Note the segments; returns the base offsets of those that lack an index, or have a damaged one."""
        there = set(names)
        unsound = set()
        for name in names:
            base_offset = offset_of_name(name)
            if base_offset is None or not name.endswith(LOG_SUFFIX):
                continue
            size_bytes = self._disk.size_bytes(f"{self._directory}/{name}")
            self.segments.append(DataSegment(base_offset, self._now_ms, end_position=size_bytes))
            for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                if segment_name(base_offset, suffix) not in there:
                    unsound.add(base_offset)
                    self.report.notes.append(
                        f"{self._directory}/{segment_name(base_offset, suffix)} is missing and is made anew"
                    )
        if self._producers is not None:  # without them the aborted transactions cannot be found
            unsound.update(filter(self._has_damaged_transactions, map(_of_transaction_index, names)))
        return unsound

    def _has_damaged_transactions(self, base_offset: int) -> bool:
        """Return whether a segment's transaction index has an entry that cannot be. As in Kafka, it is made
        anew from the segment.
        """
        if base_offset < 0:
            return False
        path = f"{self._directory}/{segment_name(base_offset, TRANSACTION_INDEX_SUFFIX)}"
        try:
            decode_aborted(self._disk.read_bytes(path), path, base_offset)
        except CorruptStorage as error:
            self.report.notes.append(f"{error.found}. The file is made anew")
            return True
        return False

    def _first_to_recover(self, unsound: set[int]) -> int | None:
        """The index of the first segment to recover; None if there is none."""
        bases = [segment.base_offset for segment in self.segments]
        wanted = [at for at, base in enumerate(bases) if base in unsound]
        if not self._found.clean and bases:
            below = sum(base <= self._found.recovery_point for base in bases)
            wanted.append(max(0, below - 1))
        return min(wanted, default=None)

    def _end_of_last(self) -> int:
        """The log end by the last index entry; -1 if entry and batches do not fit."""
        if not self.segments:
            return self.log_start
        segment = self.segments[-1]
        if not segment.end_position:
            return segment.base_offset
        try:
            header = last_header(segment, self._directory, self._opened)
        except CorruptBatch as error:
            header = None
            self.report.notes.append(
                f"{segment.path(self._directory)}, byte {error.position}: {error.reason}"
            )
        return -1 if header is None else header.next_offset

    def _recover(self, first: int, unsound: set[int]) -> Iterator[None]:
        """Recover the segments from the recovery point on, and others without an index."""
        epochs = self.epochs = self._read_epochs()
        base_offset = self.segments[first].base_offset
        if self._producers is not None:
            self._load_snapshot(base_offset)
            yield from self._replay(self._snapshots[-1] if self._snapshots else 0, base_offset)
        clean = self._found.clean
        recovery = SegmentRecovery(
            self._disk,
            self._directory,
            self._opened,
            None if clean else self._found.recovery_point,
            EpochCache(epochs.entries) if clean and epochs.entries else epochs,  # the file has them all
            None if self._producers is None else self._producers.replay,
            self.report.notes.append,
            self._settings.index_interval_bytes,
            lambda segment, end: self._drop_from(self.segments.index(segment) + 1, end),
        )
        for at in range(first, len(self.segments)):
            segment = self.segments[at]
            if clean and segment.base_offset not in unsound:
                if self._producers is not None:
                    ends = [each.base_offset for each in self.segments[at + 1 : at + 2]] or [self.log_end]
                    yield from self._replay(segment.base_offset, ends[0])
            elif segment.base_offset < recovery.end_offset:  # a truncation that a loss of power undid in part
                self._drop_from(at, recovery.end_offset)
                self.log_end = recovery.end_offset
                break
            else:
                yield from recovery.recover(segment)
            if recovery.cut:
                break
            if self._producers is not None and at + 1 < len(self.segments):
                self._write_snapshot(self.segments[at + 1].base_offset)
        if not clean or recovery.cut or self.segments[-1].base_offset in unsound:
            self.log_end = recovery.end_offset

    def _drop_from(self, first: int, log_end: int) -> None:
        """Remove the segments from one on, for good."""
        for segment in reversed(self.segments[first:]):
            path = segment.path(self._directory)
            self.report.notes.append(
                f"{path} was removed, {segment.end_position} bytes that were not flushed: the log now ends "
                f"before it, at offset {log_end}"
            )
            for name in self._disk.list_names(self._directory):
                if offset_of_name(name) == segment.base_offset:
                    self._disk.remove(f"{self._directory}/{name}")
        if self.segments[first:]:
            self._disk.sync_directory(self._directory)
        del self.segments[first:]

    def _settle_ends(self) -> None:
        """Let the log start where checkpoint and segments say, and end behind that."""
        if self.segments and self.log_end < self.log_start:
            self.report.notes.append(
                f"{self._directory} ends at offset {self.log_end}, before its log start {self.log_start}: it "
                "is emptied, and starts there"
            )
            self._drop_from(0, self.log_start)
        if not self.segments:
            self.log_end = self.log_start
            self.epochs = EpochCache()
        else:
            self.log_start = max(self.log_start, self.segments[0].base_offset)
        reached = self.log_end if self._found.clean else min(self._found.recovery_point, self.log_end)
        self.recovery_point = max(reached, 0)
        if self.epochs is not None:
            self.epochs.truncate_from_end(self.log_end)
            self.epochs.truncate_from_start(self.log_start)

    def _read_epochs(self) -> EpochCache:
        entries = self._files.read_epochs()
        if entries is None:
            self.report.notes.append(f"{self._directory}/{EPOCHS_FILE_NAME} cannot be read and is made anew")
        return EpochCache(entries or ())

    def _read_topic_id(self, names: Sequence[str]) -> Uuid | None:
        if METADATA_FILE_NAME not in names:
            return None
        path = f"{self._directory}/{METADATA_FILE_NAME}"
        data = self._disk.read_bytes(path)
        try:
            return decode_topic_id(data)
        except ValueError as error:
            # A loss of power before its content was durable, so before any flush.
            if not self._found.clean and self._found.recovery_point == 0 and is_torn(data):
                self.report.notes.append(f"{path} was removed, to be made anew from the metadata: {error}")
                self._disk.remove(path)
                return None
            raise DirectoryProblem(
                f"{path}: {error}. Write `version: 0` and `topic_id: ` with the topic's id into it"
            ) from None

    # --- producers ---

    def _remove_stray_snapshots(self, names: Sequence[str]) -> None:
        """Keep the snapshots where segments begin, and the newest one behind the last beginning."""
        bases = {segment.base_offset for segment in self.segments}
        last_base = max(bases, default=0)
        offsets = [
            offset
            for name in names
            if name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and (offset := offset_of_name(name)) is not None
        ]
        newest = max(offsets, default=-1)
        for offset in sorted(offsets):
            if offset in bases or (offset == newest and offset > last_base):
                self._snapshots.append(offset)
            else:
                self._remove_snapshot(offset)

    def _load_snapshot(self, at_most: int) -> None:
        """Begin with the newest sound snapshot as of at_most or before; remove all others behind it. As in
        Kafka, those of the log start or before are removed: their producers have no records any more.
        """
        assert self._producers is not None
        start = self.log_start
        if self._found.clean and self.segments:
            start = max(start, self.segments[0].base_offset)
        while self._snapshots and self._snapshots[0] <= start:
            self._remove_snapshot(self._snapshots.pop(0))
        while self._snapshots:
            offset = self._snapshots[-1]
            if offset <= at_most:
                try:
                    entries: list[SnapshotEntry] = decode_producers(
                        self._disk.read_bytes(self._files.snapshot_path(offset))
                    )
                    self._producers.load(entries, offset)
                    return
                except CorruptSnapshot as error:
                    self.report.notes.append(f"{self._files.snapshot_path(offset)}: {error}; it was removed")
            self._lost_snapshots = True
            self._remove_snapshot(self._snapshots.pop())
        self._producers.load([], self.log_start)

    def _replay_rest(self) -> Iterator[None]:
        """Replay what is behind the state: after a clean stop, from the newest snapshot on."""
        assert self._producers is not None
        if self.epochs is None:  # nothing was recovered
            if not self._snapshots and not self._lost_snapshots:
                return  # a stop that was clean would have left one, had there been producers
            yield from self._replay(self._snapshots[-1] if self._snapshots else self.log_start, self.log_end)
        if self.log_end > max(self._snapshots, default=0):
            self._write_snapshot(self.log_end)

    def _replay(self, start: int, end: int) -> Iterator[None]:
        """Replay the batches of producers from start to before end, which are trusted."""
        assert self._producers is not None
        ends = [segment.base_offset for segment in self.segments[1:]] + [1 << 63]
        count = 0
        for segment, behind in zip(self.segments, ends, strict=True):
            if behind <= start or segment.base_offset >= end:
                continue
            position = segment.place(start, self._directory, self._opened)[1]
            file = self._opened(segment.path(self._directory))
            try:
                for batch in scan(file, position, segment.end_position, verify=False):
                    if batch.header.base_offset >= end:
                        break
                    if batch.header.last_offset >= start and batch.header.producer_id >= 0:
                        self._producers.replay(batch)
                    count += 1
                    if count % SLICE_BATCHES == 0:
                        yield
            except CorruptBatch as error:
                self.report.notes.append(
                    f"{segment.path(self._directory)}, byte {error.position}: {error.reason}; the producers "
                    "of the batches from there on are not known"
                )

    def _write_snapshot(self, offset: int) -> None:
        assert self._producers is not None
        self._files.write_snapshot(offset, self._producers.entries())
        if offset not in self._snapshots:
            self._snapshots.append(offset)

    def _remove_snapshot(self, offset: int) -> None:
        self._disk.remove(self._files.snapshot_path(offset))
