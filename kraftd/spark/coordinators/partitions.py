"""The partitions in brokers' log directories, and up to which offset their records are committed.

Of several replicas the one with the latest leader epoch counts, and of these the one whose high watermark is
highest. The high watermark is that of ``replication-offset-checkpoint``, which a broker writes every few
seconds and when it stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE
from kraftd.log.epochs import decode_epochs
from kraftd.log.errors import DirectoryProblem
from kraftd.log.offset_checkpoint import HIGH_WATERMARKS, decode_offsets
from kraftd.log.segment import LOG_SUFFIX, offset_of_name
from kraftd.log_dirs.names import parse_name
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import join, list_directories, list_files, read_bytes, split_name

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Place:
    """A replica's directory. high_watermark is None if its checkpoint file does not have it."""

    path: str
    high_watermark: int | None


@dataclass(frozen=True)
class PartitionFiles:
    """The replica of a partition that is read: its segments in order, and the first offset not to read."""

    topic: str
    partition: int
    segments: tuple[str, ...]
    end_offset: int | None


class BrokerDirectories:
    """All partitions in some log directories, or in directories that are partitions themselves."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Raises InputError for a checkpoint file that cannot be read."""
        self._places: dict[TopicPartition, list[Place]] = {}
        for path in paths:
            parent, name = split_name(path)
            if _partition_of(name, parent) is not None:
                self._add(parent, [name])
            else:
                self._add(path, list_directories(path))

    def __repr__(self) -> str:
        return f"<BrokerDirectories {len(self._places)} partitions>"

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def coordinators(self, topic: str) -> list[PartitionFiles]:
        """The partitions of a coordinator's topic that are here, in order."""
        found = (self.find(*place) for place in sorted(self._places) if place[0] == topic)
        return [files for files in found if files is not None]

    def find(self, topic: str, partition: int) -> PartitionFiles | None:
        """The files of a partition; None if it is not here."""
        places = self._places.get((topic, partition), [])
        if not places:
            return None
        marks = [place.high_watermark for place in places if place.high_watermark is not None]
        chosen = max(places, key=lambda place: (_epoch_of(place.path), place.high_watermark or -1))
        names = [name for name, _ in list_files(chosen.path) if name.endswith(LOG_SUFFIX)]
        segments = (join(chosen.path, name) for name in names if offset_of_name(name) is not None)
        return PartitionFiles(topic, partition, tuple(segments), max(marks, default=None))

    def _add(self, parent: str, names: Sequence[str]) -> None:
        marks = None
        for name in names:
            place = _partition_of(name, parent)
            if place is not None:
                marks = _high_watermarks(parent) if marks is None else marks
                self._places.setdefault(place, []).append(Place(join(parent, name), marks.get(place)))


def _partition_of(name: str, parent: str) -> TopicPartition | None:
    """The partition of a directory; None for one that is none, or that has a suffix."""
    try:
        topic, partition, suffix = parse_name(name, parent)
    except DirectoryProblem:
        return None
    return None if suffix else (topic, partition)


def _high_watermarks(directory: str) -> dict[TopicPartition, int]:
    path = join(directory, HIGH_WATERMARKS)
    try:
        return decode_offsets(read_bytes(path) or b"")
    except ValueError as error:
        raise InputError(
            f"{path}: {error}. Copy it again, or take it away: then logs are read whole"
        ) from None


def _epoch_of(path: str) -> int:
    entries = decode_epochs(read_bytes(join(path, EPOCHS_FILE)) or b"")
    return entries[-1][0] if entries else -1
