"""One log that a start has found, to be opened in a thread; and again later if its disk had no room.

Recovery writes indexes and snapshots of producers. On a full disk the partition waits, and no other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.opening import Found, Opened, open_data_log
from kraftd.log.data.recovery import ProducerReplay
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log.partition_metadata import FILE_NAME as METADATA_FILE_NAME
from kraftd.log.partition_metadata import decode_topic_id
from kraftd.log.segment import LOG_SUFFIX, offset_of_name
from kraftd.log_dirs.names import PartitionDirectory
from kraftd.types import Uuid

ProducersOf = Callable[[str, int], ProducerReplay | None]
"""What replays the producers of a log, by topic and partition."""

OTHER_FILES_BYTES = 64 << 10  # that a recovery writes besides indexes: snapshots, epochs
_INDEXED_BYTES = 8 + 12  # of an interval, in both indexes
_OPEN_FILES = 8


class LogOpening:
    """One log to be opened. After `run`, either opened or error is set; producers are those of the open log,
    None if there are none. topic_id is that of a log with an error, if it is known. needed_bytes is how much
    a recovery writes, as `measure` has found it.
    """

    __slots__ = (
        "__weakref__",
        "_now_ms",
        "_producers_of",
        "_resources",
        "_settings_of",
        "error",
        "found",
        "name",
        "needed_bytes",
        "opened",
        "parent",
        "parsed",
        "producers",
        "topic_id",
    )

    def __init__(
        self,
        resources: LogResources,
        settings_of: Callable[[str], DataLogSettings],
        parent: str,
        name: str,
        parsed: PartitionDirectory,
        found: Found,
        now_ms: int,
        producers_of: ProducersOf,
    ) -> None:
        self.parent = parent
        self.name = name
        self.parsed = parsed
        self.found = found
        self.producers: ProducerReplay | None = None
        self.opened: Opened | None = None
        self.error: StorageError | None = None
        self.topic_id: Uuid | None = None
        self.needed_bytes = 0
        self._resources = resources
        self._settings_of = settings_of
        self._now_ms = now_ms
        self._producers_of = producers_of

    def __repr__(self) -> str:
        return f"<LogOpening {self.parent}/{self.name}>"

    def run(self) -> None:
        """Open the log. Blocks."""
        for _ in self.slices():
            pass

    def slices(self, resources: LogResources | None = None) -> Iterator[None]:
        """Open the log; each slice takes a few milliseconds."""
        topic, partition, suffix = self.parsed
        producers = self._producers_of(topic, partition)
        opening = open_data_log(
            resources or self._resources,
            self.parent,
            topic,
            partition,
            self._settings_of(topic),
            self.found,
            now_ms=self._now_ms,
            name=self.name if suffix else None,
            producers=producers,
        )
        try:
            self.opened = yield from opening
            self.producers = None if producers is None or producers.is_empty else producers
        except StorageError as error:
            self.error = error
            with suppress(FileNotFoundError, StorageError, ValueError):
                metadata = f"{self.parent}/{self.name}/{METADATA_FILE_NAME}"
                self.topic_id = decode_topic_id(self._resources.disk.read_bytes(metadata))

    def run_again(self) -> None:
        """Open the log once its disk may have room, else leave the error as it is. Blocks.

        The event loop goes on meanwhile, so the files that this opens are its own.
        """
        try:
            usable_bytes = self._resources.disk.space_bytes(self.parent)[1]
            if usable_bytes < self.measure():
                return
        except StorageError as error:
            self.error = error
            return
        self.error = None
        files = OpenFiles(self._resources.disk, _OPEN_FILES)
        try:
            for _ in self.slices(LogResources(self._resources.disk, files, draw=self._resources.draw)):
                pass
        finally:
            files.close()

    def measure(self) -> int:
        """Find out about how much a recovery writes. Raises StorageError."""
        disk, directory = self._resources.disk, f"{self.parent}/{self.name}"
        sizes = {
            base_offset: disk.size_bytes(f"{directory}/{name}")
            for name in disk.list_names(directory)
            if name.endswith(LOG_SUFFIX) and (base_offset := offset_of_name(name)) is not None
        }
        first = max((one for one in sizes if one <= self.found.recovery_point), default=0)
        indexed_bytes = sum(size_bytes for base_offset, size_bytes in sizes.items() if base_offset >= first)
        interval_bytes = max(1, self._settings_of(self.parsed.topic).index_interval_bytes)
        self.needed_bytes = indexed_bytes // interval_bytes * _INDEXED_BYTES + OTHER_FILES_BYTES
        return self.needed_bytes


class LogReopening:
    """A log that a full disk kept closed. After `run`, either log or error is set, as of a LogMaking."""

    other_paths = ()

    def __init__(self, opening: LogOpening, topic_id: Uuid | None, now_ms: int) -> None:
        self.opening = opening
        self.topic_id = topic_id
        self.path = opening.parent
        self.name = opening.name if opening.parsed.suffix else None  # of its directory, as of a LogMaking
        self.key: TopicPartition = (opening.parsed.topic, opening.parsed.partition)
        self.now_ms = now_ms
        self.log: DataLog | None = None
        self.error: StorageError | None = None
        self.notes: list[str] = []
        self._lock = threading.Lock()  # a stop waits for the thread that opens it

    def __repr__(self) -> str:
        return f"<LogReopening {self.opening!r}>"

    @property
    def producers(self) -> ProducerReplay | None:
        return self.opening.producers

    def run(self) -> None:
        """Open the log, unless that is done, or its disk has no room yet. Blocks."""
        with self._lock:
            if self.log is not None or self.error is not None:
                return
            self.opening.run_again()
            self.error = self.opening.error
            if self.opening.opened is not None:
                log, self.notes = self.opening.opened
                try:
                    if self.topic_id is not None:
                        log.assign_topic_id(self.topic_id)
                    self.log = log
                except StorageError as error:
                    self.opening.error, self.opening.opened = error, None
                    self.error = error
