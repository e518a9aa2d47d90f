"""The log directories of a broker: which partition is where, and what all partitions of a directory share.

A directory that fails goes offline with its partitions; the others go on. Everything here belongs to the
event loop's thread. What blocks is a job or comes in slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from kraftd.ground.pace import ROW_US, Pace, Slices, at_once
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.flushing import FlushJob
from kraftd.log.data.resources import Deletion, LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.disk import write_atomically
from kraftd.log.errors import DiskFull, StorageError, StorageFailure
from kraftd.log.offset_checkpoint import LOG_STARTS, RECOVERY_POINTS, TopicPartition
from kraftd.log_dirs import clean_shutdown
from kraftd.log_dirs.closing import Producers, close_logs
from kraftd.log_dirs.found_logs import Damaged, FoundLog
from kraftd.log_dirs.jobs import DeletionJob, ReplacedFiles, RunAll, WriteJob, in_turn
from kraftd.log_dirs.log_making import LogMaking
from kraftd.log_dirs.log_opening import LogOpening, LogReopening
from kraftd.log_dirs.log_table import LogTable
from kraftd.log_dirs.names import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX, suffixed_name
from kraftd.log_dirs.offset_rows import offset_rows
from kraftd.named_tuple import NamedTuple
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid

Making = TypeVar("Making", LogMaking, LogReopening)
UNKNOWN_DIRECTORIES = (None, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST)
CLOSED_TOGETHER = 256  # logs, at a clean stop


class LogDirectory(NamedTuple):
    """A path of log.dirs without a slash at its end, and the id in its meta.properties."""

    path: str
    directory_id: Uuid | None


class LogDirectories:
    """logs and futures are the open logs by topic and partition; futures will replace logs of theirs.

    rivals: the logs of a partition that has some in several directories, of different topic ids; one of them
    is in logs. offline has the paths that failed, and why: the `unreadable` ones from the beginning. damaged:
    logs whose files are damaged, or whose recovery a full disk did not take, in directories that work; such
    future ones are closed_futures. all_loaded: the directories whose logs are open, or in one of these. lost:
    the topic ids of logs whose directory failed. `loading` fills the rest of it.
    """

    def __init__(
        self,
        resources: LogResources,
        directories: Sequence[LogDirectory],
        settings_of: Callable[[str], DataLogSettings],
        unreadable: Mapping[str, StorageError] | None = None,
    ) -> None:
        self.resources = resources
        self.directories = {directory.path: directory for directory in directories}
        self.settings_of = settings_of
        self._counts: Counter[str] = Counter()  # of both, by path
        self.logs = LogTable(self._counts, resources.uncheckpointed)
        self.futures = LogTable(self._counts, resources.uncheckpointed)
        self.rivals: dict[TopicPartition, list[FoundLog]] = {}
        self.damaged: dict[TopicPartition, Damaged] = {}
        self.closed_futures: dict[TopicPartition, Damaged] = {}
        self._closed = self.damaged, self.closed_futures
        self.lost: dict[TopicPartition, Uuid | None] = {}
        self.strays: list[str] = []
        self.offline: dict[str, StorageError] = dict(unreadable or {})
        self.cordoned: frozenset[str] = frozenset()
        self.all_loaded: set[str] = set()
        self.high_watermarks: dict[tuple[str, TopicPartition], int] = {}  # by path: a log may have moved
        self._checkpoint_files = ReplacedFiles(resources.disk)
        self._makings: set[LogMaking | LogReopening] = set()

    def __repr__(self) -> str:
        count = len(self.directories)
        return f"<LogDirectories {len(self.logs)} logs in {count - len(self.offline)} of {count} directories>"

    # --- directories ---

    @property
    def online(self) -> list[str]:
        """The paths that work, in the order of log.dirs."""
        return [path for path in self.directories if path not in self.offline]

    def path_of(self, directory_id: Uuid) -> str | None:
        """The path of a directory that works, by its id."""
        found = [each.path for each in self.directories.values() if each.directory_id == directory_id]
        return found[0] if found and found[0] not in self.offline else None

    def id_of(self, log: DataLog) -> Uuid | None:
        """The id of the directory that has a log."""
        return self.directories[log.parent].directory_id

    def fail(self, path: str, error: StorageError) -> list[TopicPartition]:
        """Take a directory offline; returns the partitions that it had. Their logs refuse every change.

        The process ends if `online` is empty then.
        """
        if path not in self.directories or path in self.offline:
            return []
        self.offline[path] = error
        lost = []
        for logs in (self.logs, self.futures):
            for key in [key for key, log in logs.items() if log.parent == path]:
                log = logs[key]
                del logs[key]
                self._forget(log)
                log.fail(error)
                if logs is self.logs:  # else the partition goes on in its present directory
                    lost.append(key)
                    self.lost[key] = log.topic_id
        for closed in self._closed:
            for key in [key for key, each in closed.items() if each.parent == path]:
                del closed[key]
        for key, found in self.rivals.items():
            self.rivals[key] = [each for each in found if each.log.parent != path]
        return lost

    def is_loaded(self, path: str) -> bool:
        """Return whether all logs of a directory are open or damaged; else its checkpoints stay as they are,
        and a stop is no clean one.
        """
        return path in self.all_loaded and not self.without_room(path)

    def without_room(self, path: str) -> list[Damaged]:
        """The logs of a directory that are not open since its disk is full."""
        return [one for each in self._closed for one in each.values() if one.parent == path and one.opening]

    def by_fewest_logs(self) -> list[str]:
        """The paths for a new log: those with the fewest first, without the cordoned ones."""
        online = self.online
        if len(online) == 1:
            return online
        found = sorted((path for path in online if path not in self.cordoned), key=self._counts.__getitem__)
        return found or self.online[:1]

    # --- logs ---

    def topic_ids(self) -> dict[TopicPartition, Uuid | None]:
        """The topic ids of the open logs, and of damaged ones if they are known."""
        damaged = {key: one.topic_id for key, one in self.damaged.items() if one.topic_id is not None}
        return {**damaged, **{key: log.topic_id for key, log in self.logs.items()}}

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid | None,
        now_ms: int,
        *,
        directory_id: Uuid | None = None,
        is_new: bool = True,
        unique: str | None = None,
        failed: Callable[[str, StorageError], object] | None = None,
    ) -> DataLog:
        """Make a log at once, for a caller that may block: `begin_create` and `end_create`."""
        found = self.begin_create(
            topic, partition, topic_id, now_ms, directory_id=directory_id, is_new=is_new, unique=unique
        )
        while not isinstance(found, DataLog):
            found.run()
            found = self.end_create(found, failed)
        return found

    def begin_create(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid | None,
        now_ms: int,
        *,
        directory_id: Uuid | None = None,
        is_new: bool = True,
        unique: str | None = None,
    ) -> DataLog | LogMaking | LogReopening:
        """What makes the log of a partition, in the directory of an id, else in that with the fewest logs;
        the log if it exists, or what opens it if its disk had no room for that. With `unique` it is a future
        log, named so. `end_create` must follow.

        Raises StorageFailure if no directory takes it. Raises it also while one is offline, which may have
        it, but not if it is new or of a directory that works. What metadata takes for new may be old.
        Raises ValueError for a topic id that is not the log's.
        """
        key = (topic, partition)
        logs = self.logs if unique is None else self.futures
        if key in logs:
            if topic_id is not None:
                logs[key].assign_topic_id(topic_id)
            return logs[key]
        if (damaged := self.damaged.get(key)) is not None:
            if damaged.opening is None or unique is not None:
                raise damaged.error
            return self._begun(LogReopening(damaged.opening, topic_id, now_ms))
        is_elsewhere = directory_id is not None and self.path_of(directory_id) is not None
        is_new = is_new and not self._was_there(key, topic_id, directory_id)
        if self.offline and not is_new and not is_elsewhere:
            at = ", ".join(self.offline)
            raise StorageFailure(f"the log of {topic}-{partition} may be in {at}, offline. Repair the disk")
        name = None if unique is None else suffixed_name(*key, unique, FUTURE_SUFFIX)
        return self._make_in(self._paths_for(directory_id), key, topic_id, now_ms, name)

    def reopen_future(self, opening: LogOpening, now_ms: int) -> LogReopening:
        """What opens a future log whose disk had no room for that; `end_create` must follow."""
        return self._begun(LogReopening(opening, None, now_ms))

    def end_create(
        self,
        making: LogMaking | LogReopening,
        failed: Callable[[str, StorageError], object] | None = None,
    ) -> DataLog | LogMaking:
        """Account for a making that was run: the log, or what makes it in the next directory. `failed` takes
        the place of `fail`. Raises StorageError.
        """
        self._makings.discard(making)
        self._counts[making.path] -= 1
        closed = self.damaged if making.name is None else self.closed_futures
        if making.log is not None:
            if making.path in self.offline:  # it is there: no other directory may have it, too
                raise self.offline[making.path]
            making.log.move_to(self.resources, self.settings_of(making.key[0]))
            closed.pop(making.key, None)
            (self.logs if making.name is None else self.futures)[making.key] = making.log
            return making.log
        if making.error is not None:
            if isinstance(making, LogReopening) and (damaged := closed.get(making.key)) is not None:
                opening = damaged.opening if isinstance(making.error, DiskFull) else None
                closed[making.key] = damaged._replace(error=making.error, opening=opening)
            if not isinstance(making.error, StorageFailure):
                raise making.error
            (failed or self.fail)(making.path, making.error)
        return self._make_in(making.other_paths, making.key, making.topic_id, making.now_ms, making.name)

    def delete(
        self, topic: str, partition: int, unique: str, now_ms: int, *, future: bool = False
    ) -> DataLog | None:
        """Rename the directory of a log, to be removed after file.delete.delay.ms; None if there is none.

        Call `checkpoints_of` for its directory afterwards. Raises StorageError.
        """
        log = (self.futures if future else self.logs).pop((topic, partition))
        if log is not None:
            self._retire(log, unique, now_ms)
        return log

    def delete_damaged(
        self, topic: str, partition: int, unique: str, now_ms: int, *, future: bool = False
    ) -> str | None:
        """The same of a log that could not be opened; returns the path of its log directory."""
        closed = self.closed_futures if future else self.damaged
        if (damaged := closed.get((topic, partition))) is None:
            return None
        target = f"{damaged.parent}/{suffixed_name(topic, partition, unique, DELETE_SUFFIX)}"
        self.resources.disk.rename(damaged.directory, target)
        del closed[topic, partition]
        due_ms = now_ms + self.settings_of(topic).file_delete_delay_ms
        self.resources.deletions.append(Deletion(due_ms, (), target))
        return damaged.parent

    def is_contested(self, topic: str, partition: int, topic_id: Uuid) -> bool:
        """Return whether a log of another topic of that name was found at the start, and is still there."""
        damaged = self.damaged.get((topic, partition))
        is_of_other = damaged is not None and damaged.topic_id not in (None, topic_id)
        return is_of_other or (topic, partition) in self.rivals

    def keep_one(
        self, topic: str, partition: int, topic_id: Uuid | None, unique: Callable[[], str]
    ) -> FoundLog | None:
        """Keep, of a partition's logs that were found at the start, that of a topic id; None keeps none. The
        directories of the others, `strays` from now on, are renamed: they stay, and are used no more.
        A damaged log whose topic id is not known is kept with any.

        Raises StorageError.
        """
        key = (topic, partition)
        log = self.logs.pop(key)
        found = self.rivals.pop(key, [] if log is None else [FoundLog(log)])
        wanted = found if topic_id is not None else []
        kept = next((each for each in wanted if each.log.topic_id == topic_id), None)
        if kept is not None:
            self.logs[key] = kept.log
        for each in found:
            if each is not kept:
                self._forget(each.log)
                self._rename(each.log, suffixed_name(topic, partition, unique(), STRAY_SUFFIX))
                self.strays.append(each.log.directory)
        damaged = self.damaged.get(key)
        if damaged is not None and (topic_id is None or damaged.topic_id not in (None, topic_id)):
            target = f"{damaged.parent}/{suffixed_name(topic, partition, unique(), STRAY_SUFFIX)}"
            self.resources.disk.rename(damaged.directory, target)
            del self.damaged[key]
            self.strays.append(target)
        return kept

    def replace_with_future(self, topic: str, partition: int, unique: str, now_ms: int) -> DataLog:
        """Let the future log, which has caught up, be the partition's; the one before is deleted. What a
        thread reads of either meanwhile, it reads again.

        The directory of the log before is renamed first: after a kill in between, `recover_future` goes on.
        Raises StorageError; then the log before is the partition's again.
        """
        key = (topic, partition)
        log, before = self.futures[key], self.logs.get(key)
        if before is not None:
            self._rename(before, suffixed_name(topic, partition, unique, DELETE_SUFFIX))
        try:
            self._rename(log, None)
        except StorageError:
            if before is not None:
                self._rename(before, None)
            raise
        if before is not None:
            before.cut_count = log.cut_count = max(before.cut_count, log.cut_count) + 1
            self._bury(before, now_ms)
        del self.futures[key]
        self.logs[key] = log
        return log

    def recover_future(
        self, topic: str, partition: int, topic_id: Uuid, directory_id: Uuid, unique: str, now_ms: int
    ) -> DataLog | None:
        """The future log of a partition without another log, if the metadata names its directory: the process
        ended while it replaced that log. Raises StorageError.
        """
        future = self.futures.get((topic, partition))
        if future is None or future.topic_id != topic_id or self.id_of(future) != directory_id:
            return None
        return self.replace_with_future(topic, partition, unique, now_ms)

    # --- work for threads ---

    def checkpoints_of(self, path: str) -> list[WriteJob]:
        """The recovery points and log starts of a directory, for after a truncation or a deletion."""
        return at_once(self.checkpoints_in_slices(path))

    def checkpoints_in_slices(self, path: str) -> Slices[list[WriteJob]]:
        """The same for a pace of the event loop. A checkpoint that is begun later replaces this one's. None
        while logs of the directory are still to be opened: what the files say of those would be lost.
        """
        if not self.is_loaded(path):
            return []
        self.resources.uncheckpointed.discard(path)  # what changes from now on may be missing in this one
        files = [self._checkpoint_files.of(path, name) for name in (RECOVERY_POINTS, LOG_STARTS)]
        numbers = [file.next_number() for file in files]
        rows = yield from offset_rows(path, (self.logs, self.futures), self._closed)
        made = zip(files, numbers, rows, strict=True)
        return [WriteJob(path, file, number, its) for file, number, its in made]

    def checkpoints_after_truncations(self) -> list[WriteJob]:
        """Those of the directories in which a log was truncated since the last call."""
        cut, self.resources.cut = self.resources.cut, set()
        paths = {log.parent for log in cut if isinstance(log, DataLog)}
        return [job for path in self.online if path in paths for job in self.checkpoints_of(path)]

    def flushes(self) -> list[tuple[DataLog, FlushJob]]:
        """Flushes due by flush.messages, after a roll and of new logs, each to be ended by `end_flush`."""
        due = [log for log in self.resources.unflushed if isinstance(log, DataLog)]
        self.resources.unflushed.clear()
        return self._begin(due)

    def flushes_by_time(self, now_ms: int) -> Slices[list[tuple[DataLog, FlushJob]]]:
        """Those due by flush.ms, for log.flush.scheduler.interval.ms."""
        due, pace = [], Pace()
        for logs in (self.logs, self.futures):
            for key in logs.walk():
                if pace.spent(ROW_US):
                    yield
                if (log := logs.get(key)) is not None and log.log_end > log.recovery_point:
                    # Nothing may have been appended since a change.
                    log.settings = self.settings_of(log.topic)
                    if log.is_flush_due(now_ms):
                        due.append(log)
        return self._begin(due)

    @property
    def has_deletions(self) -> bool:
        """Return whether deleted files wait for their time."""
        return bool(self.resources.deletions)

    def deletions(self, now_ms: int) -> list[DeletionJob]:
        """The removals that are due."""
        due = [each for each in self.resources.deletions if each.due_ms <= now_ms]
        if due:
            self.resources.deletions = [each for each in self.resources.deletions if each.due_ms > now_ms]
        return [DeletionJob(self.resources.disk, each) for each in due]

    def write_job(self, path: str, name: str, rows: Sequence[str]) -> WriteJob:
        """The work that replaces a checkpoint of a directory."""
        file = self._checkpoint_files.of(path, name)
        return WriteJob(path, file, file.next_number(), rows)

    # --- the stop ---

    def close(
        self,
        now_ms: int,
        broker_epoch: int,
        producers_of: Callable[[TopicPartition], Producers | None],
        run_all: RunAll = in_turn,
    ) -> Generator[None, None, None]:
        """Flush and close all logs, write the checkpoints, and mark each directory as cleanly shut down. Each
        slice may block. A directory that fails is left without the mark. Flushes run in `run_all`: with many
        at once, a disk makes thousands of logs durable in a fraction of the time. Waits for logs being made.
        """
        for making in list(self._makings):
            making.run()
            with suppress(StorageError):
                self.end_create(making)
        closing = [(log, producers_of(key)) for key, log in self.logs.items()]
        closing += [(log, None) for log in self.futures.values()]
        for first in range(0, len(closing), CLOSED_TOGETHER):
            close_logs(closing[first : first + CLOSED_TOGETHER], now_ms, run_all, self.fail)
            yield
        for path in self.online:
            try:
                for job in self.checkpoints_of(path):
                    job.run()
                if self.is_loaded(path):
                    content = clean_shutdown.encode_clean_shutdown(broker_epoch)
                    write_atomically(self.resources.disk, f"{path}/{clean_shutdown.FILE_NAME}", content)
            except StorageError as error:
                self.fail(path, error)
            yield
        self.resources.files.close()

    # --- inside ---

    def _was_there(self, key: TopicPartition, topic_id: Uuid | None, directory_id: Uuid | None) -> bool:
        """Return whether a log was in a directory that failed, or is assigned to one of an unknown id."""
        if key in self.lost and self.lost[key] in (None, topic_id):
            return True
        known = {each.directory_id for each in self.directories.values()}
        return directory_id not in known and directory_id not in UNKNOWN_DIRECTORIES

    def _paths_for(self, directory_id: Uuid | None) -> list[str]:
        """Where a log may be made. As in Kafka, an id that is no directory's here, for a disk was replaced,
        counts as none.
        """
        known = {one.directory_id for one in self.directories.values() if one.directory_id is not None}
        if directory_id not in known:
            return self.by_fewest_logs()
        assert directory_id is not None
        path = self.path_of(directory_id)
        return [] if path is None else [path]

    def _make_in(
        self, paths: Sequence[str], key: TopicPartition, topic_id: Uuid | None, now_ms: int, name: str | None
    ) -> LogMaking:
        online = [path for path in paths if path not in self.offline]
        if not online:
            raise StorageFailure(f"no log directory takes {key[0]}-{key[1]}: {', '.join(self.directories)}")
        settings = self.settings_of(key[0])
        making = LogMaking(self.resources, online, key, topic_id, settings, now_ms, name)
        self.resources.files.forget_below(making.directory)  # else the log writes to files without a name
        return self._begun(making)

    def _begun(self, making: Making) -> Making:
        self._makings.add(making)
        self._counts[making.path] += 1  # the next one begun may go elsewhere
        return making

    def _rename(self, log: DataLog, name: str | None) -> None:
        target = f"{log.parent}/{name or f'{log.topic}-{log.partition}'}"
        log.close_files()
        self.resources.disk.rename(log.directory, target)
        log.renamed(name)

    def _retire(self, log: DataLog, unique: str, now_ms: int) -> None:
        self._rename(log, suffixed_name(log.topic, log.partition, unique, DELETE_SUFFIX))
        self._bury(log, now_ms)

    def _bury(self, log: DataLog, now_ms: int) -> None:
        """Let the files of a log that was renamed be removed later."""
        self._forget(log)
        due_ms = now_ms + log.settings.file_delete_delay_ms
        self.resources.deletions.append(Deletion(due_ms, (), log.directory))
        log.fail(StorageFailure(f"{log.topic}-{log.partition} was deleted"))

    def _forget(self, log: DataLog) -> None:
        self.resources.unflushed.pop(log, None)
        self.resources.rolled.pop(log, None)
        log.forget_tail()

    def _begin(self, due: Sequence[DataLog]) -> list[tuple[DataLog, FlushJob]]:
        begun = []
        for log in due:
            try:
                job = log.begin_flush()
            except StorageError:
                continue  # its next append says so
            if job is not None:
                begun.append((log, job))
        return begun
