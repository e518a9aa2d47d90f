"""Which compacted log of a broker is cleaned next, and to which offset each was cleaned.

`cleaner-offset-checkpoint` of a directory has the offsets, as Kafka's. A log that could not be cleaned is
left alone until the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from math import ceil
from typing import Any

from kraftd.log.data.cleanable import Cleanable, cleanable
from kraftd.log.data.cleaning import Cleaning, Pause
from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import CLEANED_TO, TopicPartition, offset_row
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import WriteJob
from kraftd.log_dirs.log_loader import read_offsets
from kraftd.named_tuple import NamedTuple
from kraftd.wire.compaction import SECRET_BYTES, SLOT_BYTES, KeyOffsets
from kraftd.wire.producer_snapshot import SnapshotEntry

LOGS_PER_SLICE = 500
LEAST_IO_BYTES = 4 << 10  # a batch that is longer is read whole in any case
_SEGMENTS_PER_SLICE = 50  # a look at a segment reads files


class CleanerSettings(NamedTuple):
    """Kafka's keys (`NodeConfig.settings`), with its defaults. One log is cleaned at a time: of the table of
    keys and of the buffers it gets one thread's share.

    secret: of the hashes of keys. limit is called in the thread for bytes read or written, with the greatest
    number a second, and may wait.
    """

    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_threads: int = 1
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_buffer_size: int = 512 << 10
    log_cleaner_io_max_bytes_per_second: float = float("inf")
    secret: bytes = bytes(SECRET_BYTES)
    limit: Callable[[int, float], None] = lambda size_bytes, bytes_per_s: None

    def changed(self, values: Mapping[str, Any]) -> CleanerSettings:
        """The settings with these values, by Kafka's keys."""
        return self._replace(**{key.replace(".", "_"): value for key, value in values.items()})

    @property
    def slots(self) -> int:
        """How many keys the table of one cleaning has room for."""
        return self.log_cleaner_dedupe_buffer_size // max(1, self.log_cleaner_threads) // SLOT_BYTES

    @property
    def io_bytes(self) -> int:
        """How much is read, or written, at once. As in Kafka, half of the buffers is for reading."""
        return max(LEAST_IO_BYTES, self.log_cleaner_io_buffer_size // max(1, self.log_cleaner_threads) // 2)


class Chosen(NamedTuple):
    """The log to clean next."""

    key: TopicPartition
    log: DataLog
    found: Cleanable


class Uncleanable(NamedTuple):
    """Why a log could not be cleaned, and the bytes that a cleaning would read for their keys."""

    reason: str
    dirty_bytes: int


class CleanerStats(NamedTuple):
    """What Kafka's cleaner tells of its last run. dirtiest_ratio is of the last look for a log. Of the last
    log that was chosen, overdue_ms is how long the log that waited longest was overdue then. The others are
    of the last cleaning that ended: read to be copied, written, its time, and the full share of the table.
    """

    dirtiest_ratio: float = 0.0
    overdue_ms: int = 0
    copied_bytes: int = 0
    written_bytes: int = 0
    elapsed_ms: int = 0
    buffer_utilization: float = 0.0


class LogCleaner:
    """uncleanable: logs that could not be cleaned. looked_at_ms: when a log to clean was last looked for, or
    the checkpoints were loaded; None before. cleans: the log that is being cleaned.
    """

    def __init__(self, directories: LogDirectories, settings: CleanerSettings) -> None:
        self.uncleanable: dict[TopicPartition, Uncleanable] = {}
        self.stats = CleanerStats()
        self.looked_at_ms: int | None = None
        self.cleans: TopicPartition | None = None
        self.settings = settings
        self._directories = directories
        self._cleaned_to: dict[TopicPartition, int] = {}

    def __repr__(self) -> str:
        return f"<LogCleaner, {len(self._cleaned_to)} cleaned, {len(self.uncleanable)} uncleanable>"

    def load(self) -> list[str]:
        """Read the checkpoints; returns notes about unreadable ones. Blocks. Raises StorageError."""
        notes: list[str] = []
        for path in self._directories.online:
            found = read_offsets(self._directories, path, CLEANED_TO, notes)
            self._cleaned_to.update(found)
        return notes

    def choose(
        self,
        last_stable_of: Callable[[TopicPartition], int | None],
        failed: Callable[[TopicPartition, DataLog, StorageError], None],
        now_ms: int,
    ) -> Generator[None, None, Chosen | None]:
        """The dirtiest log that is to be cleaned, looked for in slices; None if there is none. `failed` is
        called for each log that cannot be judged. The last segment is never cleaned: of the logs that have
        no other, none is looked at unless something is known of it.
        """
        self.looked_at_ms = now_ms
        best: Chosen | None = None
        dirtiest, overdue_ms, looked = 0.0, 0, 0
        logs = self._directories.logs
        for key in self._candidates():
            if (log := logs.get(key)) is None:
                continue
            looked += 1 + (LOGS_PER_SLICE // _SEGMENTS_PER_SLICE) * (len(log.segments) - 1)
            if looked > LOGS_PER_SLICE:
                looked = 0
                yield
            try:
                found = self._look(key, log, last_stable_of, now_ms)
            except StorageError as error:
                failed(key, log, error)
                continue
            if found is None:
                continue
            if key in self.uncleanable:
                self.set_aside(key, self.uncleanable[key].reason, found.dirty_bytes)
                continue
            dirtiest, overdue_ms = max(dirtiest, found.ratio), max(overdue_ms, found.overdue_ms)
            is_due = found.is_due(log.settings.min_cleanable_dirty_ratio)
            if is_due and (best is None or found.ratio > best.found.ratio):
                best = Chosen(key, log, found)
        self.stats = self.stats._replace(dirtiest_ratio=dirtiest)
        if best is not None:
            self.stats = self.stats._replace(overdue_ms=overdue_ms)
        return best

    def _candidates(self) -> list[TopicPartition]:
        rolled = self._directories.resources.rolled
        for log in [one for one in rolled if isinstance(one, DataLog) and one.segment_count == 1]:
            del rolled[log]
        found = [(one.topic, one.partition) for one in rolled if isinstance(one, DataLog)]
        return list(dict.fromkeys([*found, *self._cleaned_to, *self.uncleanable]))

    def cleaned_to(self, key: TopicPartition) -> int:
        """The offset to which a log was cleaned; 0 if it was not."""
        return self._cleaned_to.get(key, 0)

    def set_aside(self, key: TopicPartition, reason: str, dirty_bytes: int) -> None:
        """Note that a log cannot be cleaned. It is not, until the broker restarts or it is deleted."""
        self.uncleanable[key] = Uncleanable(reason, dirty_bytes)

    def uncleanable_of(self, path: str) -> tuple[int, int]:
        """How many logs of a directory cannot be cleaned, and their dirty bytes."""
        logs = self._directories.logs
        found = [
            one.dirty_bytes
            for key, one in self.uncleanable.items()
            if key in logs and logs[key].parent == path
        ]
        return len(found), sum(found)

    def _look(
        self,
        key: TopicPartition,
        log: DataLog,
        last_stable_of: Callable[[TopicPartition], int | None],
        now_ms: int,
    ) -> Cleanable | None:
        log.settings = self._directories.settings_of(key[0])  # nothing may have been appended since a change
        if not log.settings.compacts or log.failure is not None:
            return None
        if key in self._directories.futures:
            return None  # it is being copied, as it is
        last_stable_offset = last_stable_of(key)
        if last_stable_offset is None or self._directories.logs.get(key) is not log:
            return None
        found = cleanable(log, self._cleaned_to.get(key), last_stable_offset, now_ms)
        if found.is_reset:
            self._cleaned_to[key] = found.first_dirty
        return found

    def begin(
        self, chosen: Chosen, producers: Iterable[SnapshotEntry], now_ms: int, pause: Pause
    ) -> Cleaning:
        """The cleaning of a log. As in Kafka, the table of keys limits how far one goes."""
        _, log, found = chosen
        settings = self.settings
        load_factor, slots = settings.log_cleaner_io_buffer_load_factor, settings.slots
        most_keys = int(slots * load_factor)
        offsets = found.first_uncleanable - found.first_dirty
        enough = ceil(offsets / load_factor) + 1  # a table that is not needed is not made
        keys = KeyOffsets(most_keys, min(slots, enough), settings.secret)
        return Cleaning(log, found, keys, producers, now_ms, pause, settings.io_bytes)

    def cleaned(self, chosen: Chosen, cleaning: Cleaning, elapsed_ms: int) -> WriteJob:
        """Note a cleaning that has ended; returns the work that writes the checkpoint."""
        self._cleaned_to[chosen.key] = cleaning.end_offset
        self.stats = self.stats._replace(
            copied_bytes=cleaning.copied_bytes,
            written_bytes=cleaning.written_bytes,
            elapsed_ms=elapsed_ms,
            buffer_utilization=cleaning.key_count / max(1, self.settings.slots),
        )
        return self._checkpoint(chosen.log.parent)

    def truncated(self, key: TopicPartition, log: DataLog, offset: int) -> WriteJob | None:
        """Note a truncation: what comes after it was not cleaned."""
        if self._cleaned_to.get(key, 0) <= offset:
            return None
        self._cleaned_to[key] = offset
        return self._checkpoint(log.parent)

    def moved(self, key: TopicPartition, paths: Iterable[str]) -> list[WriteJob]:
        """Note that a log is in another directory, with the same content."""
        return [self._checkpoint(path) for path in paths] if key in self._cleaned_to else []

    def forget(self, key: TopicPartition) -> WriteJob | None:
        """Forget a log that is deleted: another of its name is not cleaned."""
        log = self._directories.logs.get(key)
        self.uncleanable.pop(key, None)
        if self._cleaned_to.pop(key, None) is None or log is None:
            return None
        return self._checkpoint(log.parent)

    def _checkpoint(self, path: str) -> WriteJob:
        logs = self._directories.logs
        rows = [
            offset_row(key, offset)
            for key, offset in self._cleaned_to.items()
            if (log := logs.get(key)) is not None and log.parent == path
        ]
        return self._directories.write_job(path, CLEANED_TO, rows)
