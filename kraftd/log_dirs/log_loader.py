"""Opens the logs of all directories at a start, each by itself: on the event loop in slices, or in threads.

loader = LogLoader(directories, now_ms, producers_of)
loader.find()                    # in any thread
for opening in loader.openings():
    opening.run()                # in any thread; or `yield from opening.slices()` on the loop
    loader.add(opening)         # on the loop
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.data.recovery import ProducerReplay
from kraftd.log.data.resources import Deletion
from kraftd.log.errors import CorruptStorage, DirectoryProblem, DiskFull, StorageError
from kraftd.log.offset_checkpoint import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    TopicPartition,
    decode_offsets,
    offsets_but_zeros,
)
from kraftd.log.partition_metadata import FILE_NAME as METADATA_FILE_NAME
from kraftd.log_dirs import clean_shutdown
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.found_logs import Damaged, FoundLog
from kraftd.log_dirs.jobs import remove_tree
from kraftd.log_dirs.log_opening import LogOpening, ProducersOf
from kraftd.log_dirs.names import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    PartitionDirectory,
    parse_name,
)
from kraftd.types import METADATA_TOPIC, Uuid

_REMOTE_INDEXES = "remote-log-index-cache"  # of Kafka's tiered storage; no partition


def run_openings(openings: Iterable[LogOpening]) -> None:
    """Open some logs. Blocks."""
    for opening in openings:
        opening.run()


class LogLoader:
    """notes are sentences for the process log. broker_epoch is that of the last clean stop, if every
    directory has the same; else None (KIP-966). remaining counts the logs of each directory that are not open
    yet. producers and producers_of_futures are those of the open logs that have any: most have none.
    """

    def __init__(
        self,
        directories: LogDirectories,
        now_ms: int,
        producers_of: ProducersOf = lambda topic, partition: None,
    ) -> None:
        self.notes: list[str] = []
        self.remaining: dict[str, int] = {}
        self.producers: dict[TopicPartition, ProducerReplay] = {}
        self.producers_of_futures: dict[TopicPartition, ProducerReplay] = {}
        self._directories = directories
        self._now_ms = now_ms
        self._producers_of = producers_of
        self._names: dict[str, list[str]] = {}  # of the logs that are still to be opened, by directory
        self._starts: dict[str, dict[TopicPartition, int]] = {}
        self._points: dict[str, dict[TopicPartition, int]] = {}
        self._topic_ids: dict[Uuid, Uuid] = {}  # one object for all logs of a topic
        self._is_listed = False
        self._clean = self._read_marks()
        self.broker_epoch = self._common_epoch()

    def __repr__(self) -> str:
        return f"<LogLoader {sum(self.remaining.values())} logs>"

    def find(self) -> None:
        """List the directories. Blocks. One that cannot be read goes offline. Raises DirectoryProblem for a
        directory in one that is no partition's.
        """
        by_path: dict[str, list[str]] = {}
        for path in self._directories.online:
            try:
                by_path[path] = self._find_in(path)
            except DirectoryProblem:
                raise
            except StorageError as error:
                self._directories.fail(path, error)
        counts = Counter(name for names in by_path.values() for name in names) if len(by_path) > 1 else {}
        for path, names in by_path.items():
            kept = [one for one in names if counts.get(one, 1) == 1 or not self._is_left_over(path, one)]
            self.remaining[path] = len(kept)
            self._names[path] = kept
            if not kept:
                self._directories.all_loaded.add(path)
        self._is_listed = True

    def openings(self) -> Iterator[LogOpening]:
        """The logs to open, each made when it is asked for: there may be very many."""
        if not self._is_listed:
            self.find()
        topics: dict[str, str] = {}  # one text for all partitions of a topic
        numbers: dict[int, int] = {}  # one number for the partitions of all topics
        directories, now_ms = self._directories, self._now_ms
        for path, names in self._names.items():
            names.reverse()
            starts, points, is_clean = self._starts[path], self._points[path], path in self._clean
            new = Found(0, 0, is_clean)
            while names:
                name = names.pop()
                parsed = parse_name(name, path)
                topic = topics.setdefault(parsed.topic, parsed.topic)
                partition = numbers.setdefault(parsed.partition, parsed.partition)
                start, point = starts.pop((topic, partition), 0), points.pop((topic, partition), 0)
                found = Found(start, point, is_clean) if start or point else new
                parsed = PartitionDirectory(topic, partition, parsed.suffix)
                resources, settings_of = directories.resources, directories.settings_of
                yield LogOpening(
                    resources, settings_of, path, name, parsed, found, now_ms, self._producers_of
                )

    def _is_left_over(self, path: str, name: str) -> bool:
        """Return whether a directory was left half made, as its disk failed or the process was killed, and
        remove it: the log was made in another directory then.
        """
        disk, directory = self._directories.resources.disk, f"{path}/{name}"
        try:
            names = disk.list_names(directory)
            if METADATA_FILE_NAME in names or any(disk.size_bytes(f"{directory}/{one}") for one in names):
                return False
            remove_tree(disk, directory)
        except StorageError as error:
            self.notes.append(f"{directory} was left half made, and cannot be removed: {error}")
        else:
            self.notes.append(f"{directory} was left half made, without records: it was removed")
        return True

    def add(self, opening: LogOpening) -> None:
        """Account for a log that was opened, or could not be. Raises DirectoryProblem for a second log of a
        partition.
        """
        directories, path = self._directories, opening.parent
        topic, partition, suffix = opening.parsed
        key = (topic, partition)
        if path in directories.offline:
            return
        if opening.opened is not None:
            log, notes = opening.opened
            self.notes += notes
            if log.topic_id is not None:
                log.topic_id = self._topic_ids.setdefault(log.topic_id, log.topic_id)
            if suffix == FUTURE_SUFFIX:
                self._add_log(directories.futures, key, log)
                if opening.producers is not None:
                    self.producers_of_futures[key] = opening.producers
            elif self._add_log(directories.logs, key, log):
                if opening.producers is not None:
                    self.producers[key] = opening.producers
            else:
                rivals = directories.rivals.setdefault(
                    key, [FoundLog(directories.logs[key], self.producers.get(key))]
                )
                rivals.append(FoundLog(log, opening.producers))
        elif isinstance(opening.error, CorruptStorage | DirectoryProblem):
            directories.damaged[key] = Damaged(
                path, opening.name, opening.topic_id, opening.error, opening.found
            )
            self.notes.append(f"{topic}-{partition} stays offline: {opening.error}")
        elif isinstance(opening.error, DiskFull):
            closed = directories.closed_futures if suffix else directories.damaged
            closed[key] = Damaged(path, opening.name, opening.topic_id, opening.error, opening.found, opening)
        elif opening.error is not None:
            directories.fail(path, opening.error)
            return
        self.remaining[path] -= 1
        if not self.remaining[path]:
            directories.all_loaded.add(path)

    def _add_log(self, logs: dict[TopicPartition, DataLog], key: TopicPartition, log: DataLog) -> bool:
        """Add an open log; return false if another directory has one of another topic of that name. A topic
        may have been made again while a directory with the log of the former one was offline. Logs without
        topic ids were never appended to: a failed disk or a power loss took their partition.metadata.
        """
        is_future = logs is self._directories.futures
        rivals = [] if is_future else [each.log for each in self._directories.rivals.get(key, ())]
        for other in (logs.get(key), *rivals):
            is_same = other is not None and other.topic_id == log.topic_id is not None
            if other is not None and (is_future or is_same):
                raise DirectoryProblem(
                    f"{key[0]}-{key[1]} is in {other.directory} and in {log.directory}, probably since a "
                    "directory failed while a replica was moved. Remove that in the directory that failed"
                )
        return logs.setdefault(key, log) is log

    def load(self) -> Self:
        """Open all logs at once, for a caller that may block."""
        for opening in self.openings():
            opening.run()
            self.add(opening)
        return self

    # --- inside ---

    def _read_marks(self) -> dict[str, bytes]:
        """The content of the mark of each directory that was cleanly shut down."""
        disk = self._directories.resources.disk
        marks = {}
        for path in self._directories.online:
            try:
                marks[path] = disk.read_bytes(f"{path}/{clean_shutdown.FILE_NAME}")
            except FileNotFoundError:
                continue
            except StorageError as error:
                self._directories.fail(path, error)
        return marks

    def _common_epoch(self) -> int | None:
        if set(self._clean) != set(self._directories.directories):
            return None
        epochs = {clean_shutdown.decode_clean_shutdown(data) for data in self._clean.values()}
        return epochs.pop() if len(epochs) == 1 else None

    def _find_in(self, path: str) -> list[str]:
        """The names of the logs of a directory. Raises StorageError."""
        directories, disk = self._directories, self._directories.resources.disk
        if path in self._clean:
            # A crash while the logs are opened is an unclean stop.
            disk.remove(f"{path}/{clean_shutdown.FILE_NAME}")
            disk.sync_directory(path)
        self._starts[path], self._points[path], marks = (
            read_offsets(directories, path, name, self.notes, offsets_but_zeros)
            for name in (LOG_STARTS, RECOVERY_POINTS, HIGH_WATERMARKS)
        )
        directories.high_watermarks.update({(path, key): offset for key, offset in marks.items()})
        found = []
        for name, kind in disk.list_others(path).items():
            if kind != "a directory" or name == _REMOTE_INDEXES:
                continue
            topic, _, suffix = parse_name(name, path)
            if topic == METADATA_TOPIC:
                continue
            if suffix == DELETE_SUFFIX:
                due_ms = self._now_ms + directories.settings_of(topic).file_delete_delay_ms
                directories.resources.deletions.append(Deletion(due_ms, (), f"{path}/{name}"))
            elif suffix == STRAY_SUFFIX:
                directories.strays.append(f"{path}/{name}")
                self.notes.append(f"{path}/{name} was set aside: the cluster did not know that partition")
            else:
                found.append(name)
        return found


def read_offsets(
    directories: LogDirectories,
    path: str,
    name: str,
    notes: list[str],
    decode: Callable[[bytes], dict[TopicPartition, int]] = decode_offsets,
) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint of a directory; none, and a note, if it cannot be read.

    Raises StorageError.
    """
    try:
        return decode(directories.resources.disk.read_bytes(f"{path}/{name}"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        notes.append(f"{path}/{name}: {error}. It counts as empty, and is written anew")
        return {}
