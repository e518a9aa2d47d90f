"""Cleans the compacted logs of a broker, one after the other: a thread writes, the loop replaces segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.host.ports import Log, Ports
from kraftd.log.data.cleaning import Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.segment import DataSegment
from kraftd.log.errors import CorruptStorage, DiskFull, StorageError, StorageFailure
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.cleaner import Chosen, CleanerSettings, LogCleaner
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import WriteJob
from kraftd.wire.producer_snapshot import SnapshotEntry

LOGS_ASKED_AT_ONCE = 5_000  # for their policy: less than a millisecond

Failed = Callable[[TopicPartition, DataLog, StorageError], None]
Expire = Callable[[TopicPartition], int]
"""Remove what retention no longer keeps of a log; returns the work in microseconds."""


class GivenUp(Exception):
    """The log was truncated or is being copied, or the broker stops."""


class _Running:
    """The cleaning under way. The thread looks at is_given_up, which the loop sets."""

    def __init__(self, chosen: Chosen, now_ms: int) -> None:
        self.chosen = chosen
        self.began_ms = now_ms
        self.is_given_up = False


class LogCleaning:
    """`last_stable_of` gives a partition's last stable offset if it is hosted, `snapshot_of` its producers;
    `failed` is called for a log whose disk fails. `look` is done again and again, and after `look_soon`. It
    has `expire` done for the compacted logs besides.
    """

    def __init__(
        self,
        directories: LogDirectories,
        settings: CleanerSettings,
        ports: Ports,
        last_stable_of: Callable[[TopicPartition], int | None],
        snapshot_of: Callable[[TopicPartition, int], Iterable[SnapshotEntry]],
        failed: Failed,
        look_soon: Callable[[], None],
        expire: Expire,
    ) -> None:
        self.cleaner = LogCleaner(directories, settings)
        self._directories = directories
        self._ports = ports
        self._lines: Log = ports.log
        self._last_stable_of = last_stable_of
        self._snapshot_of = snapshot_of
        self._failed_log = failed
        self._look_soon = look_soon
        self._expire = expire
        self._running: _Running | None = None
        self._is_loaded = False
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<LogCleaning of {self._running.chosen.log if self._running else 'nothing'}>"

    def load(self) -> None:
        """Read the checkpoints, in a thread."""
        self.cleaner.looked_at_ms = self._ports.wall_ms()

        def loaded(notes: list[str]) -> None:
            self._is_loaded = True
            for note in notes:
                self._lines.warning("recovered", note=note)

        self._ports.work_threads.run(self.cleaner.load, loaded, self._ports.failed)

    def look(self) -> Iterator[None]:
        """Begin to clean the dirtiest log that is to be cleaned, unless one is being cleaned. Then remove
        what is expired of the others.
        """
        if not self._is_loaded or self._is_closed:
            return
        if self._running is None:
            yield from self._choose()
        pace = Pace()
        for key in (yield from self._compacted()):
            if pace.spent(self._expire(key) if self._may_expire(key) else ROW_US):
                yield

    def _compacted(self) -> Slices[list[TopicPartition]]:
        """The logs whose policy is to compact: few, among very many that are asked again and again."""
        logs, found = self._directories.logs, list[TopicPartition]()
        keys = logs.walk()
        while some := list(islice(keys, LOGS_ASKED_AT_ONCE)):
            found += [key for key in some if (log := logs.get(key)) is not None and log.settings.compacts]
            yield
        return found

    def _choose(self) -> Iterator[None]:
        now_ms = self._ports.wall_ms()
        chosen = yield from self.cleaner.choose(self._last_stable_of, self._not_judged, now_ms)
        if chosen is not None and self._is_current(chosen):
            self._begin(chosen, now_ms)

    def _may_expire(self, key: TopicPartition) -> bool:
        """Return whether a log is compacted, as far as known, and neither cleaned, copied nor set aside."""
        log = self._directories.logs.get(key)
        if log is None or not log.settings.compacts or log.failure is not None or self._is_closed:
            return False
        is_cleaned = self._running is not None and self._running.chosen.key == key
        return not is_cleaned and key not in self._directories.futures and key not in self.cleaner.uncleanable

    def truncated(self, key: TopicPartition, offset: int) -> None:
        """Give up the cleaning of a log that is truncated: newer records of its keys may be gone."""
        log = self._directories.logs.get(key)
        if log is None:
            return
        if self._running is not None and self._running.chosen.key == key:
            self._running.is_given_up = True
        job = self.cleaner.truncated(key, log, offset)
        if job is not None:
            self._write(job)

    def pause(self, key: TopicPartition) -> None:
        """Give up the cleaning of a log that is copied to another directory."""
        if self._running is not None and self._running.chosen.key == key:
            self._running.is_given_up = True

    def moved(self, key: TopicPartition, paths: Iterable[str]) -> None:
        """Note that a log was moved from one of these directories to the other."""
        for job in self.cleaner.moved(key, paths):
            self._write(job)

    def forget(self, key: TopicPartition) -> None:
        """Forget a log that is deleted."""
        job = self.cleaner.forget(key)
        if job is not None:
            self._write(job)

    def close(self) -> None:
        """Start no further cleaning, and abandon the one that runs."""
        self._is_closed = True
        if self._running is not None:
            self._running.is_given_up = True

    # -- one cleaning

    def _begin(self, chosen: Chosen, now_ms: int) -> None:
        running = self._running = _Running(chosen, self._ports.timer.now_ms())
        self.cleaner.cleans = chosen.key

        def pause(size_bytes: int) -> None:
            if running.is_given_up:
                raise GivenUp
            settings = self.cleaner.settings  # they may change meanwhile
            settings.limit(size_bytes, settings.log_cleaner_io_max_bytes_per_second)

        producers = self._snapshot_of(chosen.key, chosen.log.log_end)
        cleaning = self.cleaner.begin(chosen, producers, now_ms, pause)
        self._run(cleaning.note_keys, partial(self._noted, chosen, cleaning), chosen)

    def _noted(self, chosen: Chosen, cleaning: Cleaning, _result: None) -> None:
        try:
            cleaning.begin()
        except (StorageError, FileNotFoundError) as error:
            self._failed(chosen, error)
        else:
            self._go_on(chosen, cleaning)

    def _go_on(self, chosen: Chosen, cleaning: Cleaning) -> None:
        group = cleaning.next_group()
        if group is None:
            self._done(chosen, cleaning)
        else:
            done = partial(self._cleaned, chosen, cleaning, group)
            self._run(partial(cleaning.clean, group), done, chosen)

    def _cleaned(
        self, chosen: Chosen, cleaning: Cleaning, group: list[DataSegment], cleaned: DataSegment
    ) -> None:
        try:
            is_current = self._is_current(chosen) and chosen.log.replace_segments(
                group, cleaned, self._ports.wall_ms()
            )
        except (StorageError, FileNotFoundError) as error:
            self._failed(chosen, error)
            return
        if is_current:
            self._go_on(chosen, cleaning)
        else:
            self._end()
            self._ports.work_threads.run(partial(cleaning.drop, cleaned), lambda _: None, lambda _: None)

    def _done(self, chosen: Chosen, cleaning: Cleaning) -> None:
        now_ms = self._ports.timer.now_ms()
        elapsed_ms = 0 if self._running is None else now_ms - self._running.began_ms
        self._end()
        self._lines.info(
            "a log was cleaned",
            partition=_name(chosen.key),
            end_offset=cleaning.end_offset,
            read_bytes=cleaning.read_bytes,
            written_bytes=cleaning.written_bytes,
        )
        self._write(self.cleaner.cleaned(chosen, cleaning, elapsed_ms))
        self._look_soon()  # only a look that finds nothing is followed by a pause

    def _run(self, work: Callable[[], object], done: Callable[..., None], chosen: Chosen) -> None:
        self._ports.work_threads.run(work, done, partial(self._failed, chosen))

    def _failed(self, chosen: Chosen, error: Exception) -> None:
        is_over = isinstance(error, GivenUp) or not self._is_current(chosen)
        self._end()
        if not is_over:
            self._judge(chosen.key, chosen.log, error, chosen.found.dirty_bytes)

    def _end(self) -> None:
        self._running = self.cleaner.cleans = None

    def _not_judged(self, key: TopicPartition, log: DataLog, error: StorageError) -> None:
        if key not in self.cleaner.uncleanable:
            self._judge(key, log, error, 0)

    def _judge(self, key: TopicPartition, log: DataLog, error: Exception, dirty_bytes: int) -> None:
        name = _name(key)
        if isinstance(error, DiskFull):
            self._lines.warning("a log is cleaned later", partition=name, error=str(error))
        elif isinstance(error, StorageFailure):
            self._failed_log(key, log, error)
        else:
            reason = error.found if isinstance(error, CorruptStorage) else str(error) or repr(error)
            self.cleaner.set_aside(key, reason, dirty_bytes)
            self._lines.error("a log cannot be cleaned", partition=name, error=str(error))

    def _is_current(self, chosen: Chosen) -> bool:
        """Return whether the log is still the partition's and compacted, and none has truncated it since."""
        directories = self._directories
        is_there = directories.logs.get(chosen.key) is chosen.log and chosen.log.failure is None
        is_given_up = self._running is not None and self._running.is_given_up
        if not is_there or is_given_up or self._is_closed:
            return False
        return directories.settings_of(chosen.key[0]).compacts

    def _write(self, job: WriteJob) -> None:
        def failed(error: Exception) -> None:
            self._lines.error("a checkpoint was not written", path=job.file.path, error=str(error))

        self._ports.work_threads.run(job.run, lambda _: None, failed)


def _name(key: TopicPartition) -> str:
    topic, partition = key
    return f"{topic}-{partition}"
