"""Which compacted log of a broker is cleaned next, and to which offset each was cleaned.

`cleaner-offset-checkpoint` of a directory has the offsets, as Kafka's. A log that could not be cleaned is
left alone until the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from math import ceil
from typing import NamedTuple

from kraftd.log.data.cleanable import Cleanable, cleanable
from kraftd.log.data.cleaning import Cleaning, Pause
from kraftd.log.data.data_log import DataLog
from kraftd.log_dirs.directories import LogDirectories, read_offsets
from kraftd.log_dirs.jobs import WriteJob
from kraftd.log_dirs.offset_checkpoint import CLEANED_TO, TopicPartition
from kraftd.wire.compaction import SECRET_BYTES, SLOT_BYTES, KeyOffsets
from kraftd.wire.producer_snapshot import SnapshotEntry

LOGS_PER_SLICE = 500
_SEGMENTS_PER_SLICE = 50  # a look at a segment reads files


class CleanerSettings(NamedTuple):
    """Kafka's keys (`NodeConfig.settings`), with its defaults. One log is cleaned at a time: of the table of
    keys it gets one thread's share.

    secret: of the hashes of keys. limit is called in the thread for bytes read or written, and may wait.
    """

    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_threads: int = 1
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = float("inf")
    secret: bytes = bytes(SECRET_BYTES)
    limit: Callable[[int], None] = lambda size_bytes: None


class Chosen(NamedTuple):
    """The log to clean next."""

    key: TopicPartition
    log: DataLog
    found: Cleanable


class LogCleaner:
    """uncleanable: logs that could not be cleaned, and why."""

    def __init__(self, directories: LogDirectories, settings: CleanerSettings) -> None:
        self.uncleanable: dict[TopicPartition, str] = {}
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
        self, last_stable_of: Callable[[TopicPartition], int | None], now_ms: int
    ) -> Generator[None, None, Chosen | None]:
        """The dirtiest log that is to be cleaned, looked for in slices; None if there is none. Raises
        StorageError.
        """
        best: Chosen | None = None
        looked = 0
        for key, log in list(self._directories.logs.items()):
            looked += 1 + (LOGS_PER_SLICE // _SEGMENTS_PER_SLICE) * (len(log.segments) - 1)
            if looked > LOGS_PER_SLICE:
                looked = 0
                yield
            found = self._look(key, log, last_stable_of, now_ms)
            if found is None:
                continue
            is_due = found.is_due(log.settings.min_cleanable_dirty_ratio)
            if is_due and (best is None or found.ratio > best.found.ratio):
                best = Chosen(key, log, found)
        return best

    def _look(
        self,
        key: TopicPartition,
        log: DataLog,
        last_stable_of: Callable[[TopicPartition], int | None],
        now_ms: int,
    ) -> Cleanable | None:
        log.settings = self._directories.settings_of(key[0])  # nothing may have been appended since a change
        if not log.settings.compacts or log.failure is not None or key in self.uncleanable:
            return None
        if key in self._directories.futures:
            return None  # it is being copied, as it is
        last_stable_offset = last_stable_of(key)
        if last_stable_offset is None or self._directories.logs.get(key) is not log:
            return None
        found = cleanable(log, self._cleaned_to.get(key), last_stable_offset, now_ms)
        if found.is_reset:
            self._cleaned_to[key] = found.first_dirty
        return found if found.clean_bytes + found.dirty_bytes else None

    def begin(
        self, chosen: Chosen, producers: Iterable[SnapshotEntry], now_ms: int, pause: Pause
    ) -> Cleaning:
        """The cleaning of a log. As in Kafka, the table of keys limits how far one goes."""
        _, log, found = chosen
        settings = self.settings
        load_factor = settings.log_cleaner_io_buffer_load_factor
        table_bytes = settings.log_cleaner_dedupe_buffer_size // max(1, settings.log_cleaner_threads)
        slots = table_bytes // SLOT_BYTES
        most_keys = int(slots * load_factor)
        offsets = found.first_uncleanable - found.first_dirty
        enough = ceil(offsets / load_factor) + 1  # a table that is not needed is not made
        keys = KeyOffsets(most_keys, min(slots, enough), settings.secret)
        return Cleaning(log, found, keys, producers, now_ms, pause)

    def cleaned(self, chosen: Chosen, end_offset: int) -> WriteJob:
        """Note a cleaning that has ended; returns the work that writes the checkpoint."""
        self._cleaned_to[chosen.key] = end_offset
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
        offsets = [
            (key, offset)
            for key, offset in self._cleaned_to.items()
            if (log := logs.get(key)) is not None and log.parent == path
        ]
        return self._directories.write_job(path, CLEANED_TO, offsets)
