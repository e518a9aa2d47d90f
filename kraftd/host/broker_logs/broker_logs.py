"""The logs of a broker node: loads, writes, reads and searches them, over the disk's port.

Appends are written in their step. Flushes, cold reads, searches by time, checkpoints and deletions run in
threads. A directory that fails goes offline with its partitions, and the node is notified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice

from kraftd.broker_node.effects import (
    CordonDirectories,
    DescribeDirectories,
    OfPartition,
    SetLog,
)
from kraftd.broker_node.events import (
    DirectoriesDescribed,
    DirectoryState,
    LogsFailed,
    LogsLoaded,
    LogTruncated,
    RecordsExpired,
)
from kraftd.ground.event import Event
from kraftd.ground.pace import ROW_US, Pace, at_once
from kraftd.host.broker_logs.appending import Appends
from kraftd.host.broker_logs.checkpoints import Checkpoints
from kraftd.host.broker_logs.log_changes import LogChanges
from kraftd.host.broker_logs.producer_reload import ProducerReload
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Log, Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import run_cold
from kraftd.log.data.recovery import ProducerReplay
from kraftd.log.data.retention import remove_expired
from kraftd.log.errors import CorruptStorage, DirectoryProblem, DiskFull, StorageError, StorageFailure
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.full_directories import FullDirectories
from kraftd.log_dirs.high_watermarks import HighWatermarks, MarkOf
from kraftd.log_dirs.jobs import RunAll, in_turn
from kraftd.log_dirs.log_loader import LogLoader, run_openings
from kraftd.log_dirs.log_opening import LogOpening
from kraftd.named_tuple import NamedTuple
from kraftd.partition.effects import (
    AssignEpoch,
    LogStartMoved,
    StartLogAt,
    TruncateLog,
)
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry

Step = Callable[[Event], None]

LOGS_OPENED_AT_ONCE = 4  # at a start, each by a thread
LOGS_A_JOB = 32  # that a thread opens at most before the event loop accounts for them
EXPIRY_LOOK_US = 10  # of a log that retention looks at
EXPIRY_US = 500  # of a segment that it removes, with a new one and its files


class Schedules(NamedTuple):
    """How often the work besides requests is done, by Kafka's keys (`NodeConfig.settings`)."""

    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    producer_id_expiration_check_interval_ms: int = 600_000
    deletion_ms: int = 1_000
    log_initial_task_delay_ms: int = 30_000  # after a start, to what flushes, checkpoints and removes


class BrokerLogs:
    """See the module. `step` steps the node; `snapshot_of` gives a partition's producers before an offset,
    `new_producers` makes a state to load, and `mark_of` gives the high watermark of a partition
    whose log is open.
    """

    def __init__(
        self,
        directories: LogDirectories,
        loaded_producers: dict[TopicPartition, ProducerReplay],
        ports: Ports,
        step: Step,
        new_unique_text: Callable[[], str],
        snapshot_of: Callable[[TopicPartition, int], Iterable[SnapshotEntry]],
        new_producers: Callable[[TopicPartition], ReplayedProducers],
        mark_of: MarkOf,
    ) -> None:
        self.directories = directories
        self._ports = ports
        self._lines: Log = ports.log
        self._step = step
        self._snapshot_of = snapshot_of
        self._new_producers = new_producers
        self._mark_of = mark_of
        self._high_watermarks = HighWatermarks(directories, mark_of)
        self.full_directories = FullDirectories(
            directories.resources.disk, ports.timer.now_ms, self._needed_bytes
        )
        self.appends = Appends(directories.logs, ports, snapshot_of, self.full_directories.wrote, self.failed)
        self._checkpoints = Checkpoints(directories, ports, self._directory_failed)
        self.changes = LogChanges(
            directories,
            loaded_producers,
            ports,
            step,
            new_unique_text,
            self._checkpoints,
            self.failed,
            self._directory_failed,
            self._note_failures,
            self.full_directories,
        )

    def __repr__(self) -> str:
        return f"<BrokerLogs of {self.directories!r}>"

    # -- opening

    def load(self, loader: LogLoader) -> None:
        """Find and open all logs that are on disk, in threads; LogsLoaded comes back."""
        threads, failed = self._ports.work_threads, self._ports.failed
        threads.run(loader.find, partial(self._open_found, loader), failed)

    def _open_found(self, loader: LogLoader, _result: None) -> None:
        waiting, left, under_way = loader.openings(), sum(loader.remaining.values()), 0
        has_failed = False

        def opened(openings: list[LogOpening], _result: object) -> None:
            nonlocal under_way, has_failed
            under_way -= 1
            try:
                for opening in openings:
                    loader.add(opening)
            except DirectoryProblem as error:
                has_failed = True
                self._ports.failed(error)
            if not has_failed:
                begin()

        def begin() -> None:
            nonlocal left, under_way
            while under_way < LOGS_OPENED_AT_ONCE and left:
                count = max(1, min(LOGS_A_JOB, left // (2 * LOGS_OPENED_AT_ONCE)))
                openings = list(islice(waiting, count))
                left -= count
                under_way += 1
                work = partial(run_openings, openings)
                self._ports.work_threads.run(work, partial(opened, openings), self._ports.failed)
            if not under_way:
                next(waiting, None)  # at its end it lets the last opening go
                for note in loader.notes:
                    self._lines.warning("recovered", note=note)
                self._loaded()

        begin()

    def _loaded(self) -> None:
        for path, error in self.directories.offline.items():
            self._lines.error("a log directory is offline", directory=path, error=str(error))
            if not self.directories.online:
                self._ports.failed(error)
                return
        for path in self.directories.online:
            self._note_without_room(path)
        ids = {path: one.directory_id for path, one in self.directories.directories.items()}
        self._step(LogsLoaded(self.directories.topic_ids(), ids))
        self._note_failures()

    def _note_without_room(self, path: str) -> None:
        waiting = self.directories.without_room(path)
        if not waiting:
            return
        self.full_directories.note(path)
        with suppress(StorageError):
            for one in waiting:
                assert one.opening is not None
                one.opening.measure()
        free_bytes, needed_bytes = self.full_directories.room(path)
        self._lines.error(
            "the disk is full: logs are recovered once it has room",
            directory=path,
            logs=len(waiting),
            free_bytes=free_bytes,
            needed_bytes=needed_bytes or None,
            remedy="make room on that disk, or enlarge it; nothing that was acknowledged is lost",
        )

    def _needed_bytes(self, path: str) -> int:
        """How much room the logs of a directory need that wait for it."""
        openings = (one.opening for one in self.directories.without_room(path))
        return sum(one.needed_bytes for one in openings if one is not None)

    def set(self, effect: SetLog) -> None:
        """Let a log follow changed configs."""
        for logs in (self.directories.logs, self.directories.futures):
            log = logs.get((effect.topic, effect.partition))
            if log is not None:
                log.settings = effect.settings

    # -- partitions' effects

    def perform(self, effect: OfPartition) -> None:
        """Perform an effect of a partition on its log."""
        key, inner = (effect.topic, effect.partition), effect.effect
        if (log := self.directories.logs.get(key)) is not None:
            self.appends.write()
            try:
                if isinstance(inner, AssignEpoch):
                    log.assign_epoch(inner.leader_epoch, inner.start_offset)
                elif isinstance(inner, LogStartMoved):
                    log.increment_log_start(inner.log_start_offset)
                elif isinstance(inner, TruncateLog):
                    log.truncate_to(inner.end_offset, self._ports.wall_ms())
                    self._reload_producers(key, log)
                elif isinstance(inner, StartLogAt):
                    log.truncate_fully_and_start_at(
                        inner.offset, self._ports.wall_ms(), inner.log_start_offset
                    )
            except StorageError as error:
                self.failed(key, log, error)
                if isinstance(inner, TruncateLog):
                    self._not_truncated(key)

    def _reload_producers(self, key: TopicPartition, log: DataLog) -> None:
        """Load the producers of a log that was truncated; LogTruncated comes back."""

        def done(producers: ReplayedProducers) -> None:
            self._step(LogTruncated(*key, log, producers.states))

        def failed(error: Exception) -> None:
            failure = error if isinstance(error, StorageError) else StorageFailure(f"{log!r}: {error!r}")
            if self.directories.logs.get(key) is log:
                self.failed(key, log, failure)
                self._not_truncated(key)

        disk, threads = self.directories.resources.disk, self._ports.work_threads
        ProducerReload(log, self._new_producers(key), disk, run_cold, threads, done, failed).start()

    def _not_truncated(self, key: TopicPartition) -> None:
        """A log that cannot be truncated does not serve: its partition goes offline."""
        self._note_failures((key,))

    def flush_due(self) -> None:
        """Flush what has become due by a step."""
        if self.directories.resources.unflushed:
            self.flush()

    # -- reading

    def find_log(self, topic_id: Uuid, topic: str, index: int) -> DataLog | None:
        """The open log of a partition of that topic id."""
        log = self.directories.logs.get((topic, index))
        return log if log is not None and log.topic_id == topic_id else None

    def cordon(self, effect: CordonDirectories) -> None:
        """Put new logs into other directories."""
        self.directories.cordoned = effect.paths

    def describe_directories(self, effect: DescribeDirectories) -> None:
        """Ask the disks how much room there is, in a thread."""
        directories = self.directories
        disk, cordoned, offline = directories.resources.disk, directories.cordoned, set(directories.offline)
        paths = list(directories.directories)

        def look(path: str) -> DirectoryState:
            try:
                if path not in offline:
                    return DirectoryState(path, *disk.space_bytes(path), path in cordoned)
            except StorageError:
                pass
            return DirectoryState(path, error=ErrorCode.KAFKA_STORAGE_ERROR)

        def done(found: tuple[DirectoryState, ...]) -> None:
            self._step(DirectoriesDescribed(effect.request_id, found))

        self._ports.work_threads.run(lambda: tuple(map(look, paths)), done, self._ports.failed)

    # -- work besides requests

    def flush(self) -> None:
        """Flush, in threads, what is due by its number of messages, and new logs and segments."""
        self._flush(self.directories.flushes())
        self._checkpoints.write(self.directories.checkpoints_after_truncations())

    def flush_by_time(self) -> Iterator[None]:
        """Flush what is due by time, looking at some logs in each slice."""
        self._flush((yield from self.directories.flushes_by_time(self._ports.wall_ms())))

    def _flush(self, begun: Iterable[tuple[DataLog, object]]) -> None:
        for log, job in begun:
            self._ports.work_threads.run(
                job.run,  # type: ignore[attr-defined]
                partial(self._flushed, log, job),
                partial(self._flush_failed, log, job),
            )

    def _flushed(self, log: DataLog, job: object, _result: None) -> None:
        log.end_flush(job, self._ports.wall_ms())  # type: ignore[arg-type]

    def _flush_failed(self, log: DataLog, job: object, error: Exception) -> None:
        failure = error if isinstance(error, StorageError) else StorageFailure(f"{log.directory}: {error!r}")
        log.end_flush(job, self._ports.wall_ms(), failure)  # type: ignore[arg-type]
        key = log.topic, log.partition
        if log in (self.directories.logs.get(key), self.directories.futures.get(key)):
            self.failed(key, log, failure)  # else it was deleted meanwhile, and its files have other names

    def checkpoint(self) -> Iterator[None]:
        """Write recovery points and log starts that have changed, of some logs in each slice."""
        return self._checkpoints.write_changed()

    def checkpoint_high_watermarks(self, changed: Iterable[TopicPartition]) -> Iterator[None]:
        """Write the high watermarks, given the partitions of which something has changed."""
        self._checkpoints.write((yield from self._high_watermarks.checkpoints(changed)))

    @property
    def has_waiting(self) -> bool:
        """Return whether deleted files wait for their time, or logs for room."""
        return self.directories.has_deletions or self.changes.waits_for_room

    def remove_due(self) -> None:
        """Remove deleted files whose time has come."""
        for job in self.directories.deletions(self._ports.wall_ms()):
            self._ports.work_threads.run(
                job.run,
                lambda _: None,
                lambda error: self._lines.warning("files could not be removed", error=str(error)),
            )

    def remove_expired(self) -> Iterator[None]:
        """Remove segments that retention no longer keeps, of some logs in each slice. Compacted ones are left
        to the cleaner, as in Kafka.
        """
        pace = Pace()
        for key in self.directories.logs.walk():
            mark = self._mark_of(key)
            if pace.spent(ROW_US if mark is None else self.remove_expired_of(key, mark, is_compacted=False)):
                yield

    def remove_expired_of(self, key: TopicPartition, high_watermark: int, *, is_compacted: bool) -> int:
        """Remove those of one log, unless its policy is another one; returns the work in microseconds."""
        log = self.directories.logs.get(key)
        if log is None or log.is_empty:
            return ROW_US
        log.settings = self.directories.settings_of(key[0])  # nothing may have been appended since a change
        if log.settings.compacts != is_compacted:
            return ROW_US
        return EXPIRY_LOOK_US + EXPIRY_US * self._remove_expired(key, log, high_watermark)

    def _remove_expired(self, key: TopicPartition, log: DataLog, high_watermark: int) -> int:
        """Returns the number of removed segments."""
        before, producers = log.log_start, partial(self._snapshot_of, key, log.log_end)
        try:
            removed = remove_expired(log, self._ports.wall_ms(), high_watermark, producers)
        except StorageError as error:
            self.failed(key, log, error)
            return 1
        if log.log_start > before:
            self._lines.info("records were deleted", partition=f"{key[0]}-{key[1]}", log_start=log.log_start)
            self._ports.timer.call_soon(self._step, RecordsExpired(*key, log.log_start))
        return removed

    # -- failures

    def failed(self, key: TopicPartition, log: DataLog, error: StorageError) -> None:
        """Report a failure; unless the disk is only full or one file is damaged, the directory is offline."""
        name = f"{key[0]}-{key[1]}"
        if isinstance(error, DiskFull):
            self._disk_filled(log.parent, error, name)
            return
        self._lines.error("a log failed", partition=name, error=str(error))
        if not isinstance(error, CorruptStorage):
            self._directory_failed(log.parent, error)

    def _directory_failed(self, path: str, error: Exception) -> None:
        failure = error if isinstance(error, StorageError) else StorageFailure(f"{path}: {error!r}")
        if isinstance(failure, DiskFull):
            self._disk_filled(path, failure)
            return
        if path in self.directories.offline:
            return
        lost = self.directories.fail(path, failure)
        self._lines.error("a log directory is offline", directory=path, error=str(failure))
        if not self.directories.online:
            self._ports.failed(failure)
            return
        self._note_failures(lost)

    def _disk_filled(self, path: str, error: DiskFull, partition: str | None = None) -> None:
        if self.full_directories.note(path):
            free_bytes, _ = self.full_directories.room(path)
            self._lines.error(
                "the disk is full: records there are refused until it has room",
                directory=path, partition=partition, free_bytes=free_bytes, error=str(error),
            )  # fmt: skip

    def _note_failures(self, lost: Iterable[TopicPartition] = ()) -> None:
        lost = tuple(lost)
        directories = self.directories
        ids = tuple(
            one.directory_id
            for path in directories.offline
            if (one := directories.directories[path]).directory_id is not None
        )
        if directories.offline or lost:
            errors = {path: str(error) for path, error in directories.offline.items()}
            self._ports.timer.call_soon(self._step, LogsFailed(lost, ids, errors))

    # -- the stop

    def close(self, broker_epoch: int, run_all: RunAll = in_turn) -> None:
        """Flush and close all logs; each directory is marked as cleanly shut down. Blocks."""
        self.changes.close()
        for job in at_once(self._high_watermarks.checkpoints(self.directories.logs.walk())):
            try:
                job.run()
            except StorageError as error:
                self._lines.error("a checkpoint was not written", error=str(error))

        def producers_of(key: TopicPartition) -> Callable[[], Iterable[SnapshotEntry]]:
            return lambda: self._snapshot_of(key, self.directories.logs[key].log_end)

        for _ in self.directories.close(self._ports.wall_ms(), broker_epoch, producers_of, run_all):
            pass
