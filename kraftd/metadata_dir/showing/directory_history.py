"""The history in a directory, or in a copied file of one: its checkpoints and its log, read only.

No lock is taken and nothing is changed, so a running process is not disturbed.
"""

from __future__ import annotations

from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.log.following import SegmentReader, first_offset
from kraftd.log.segment import LOG_SUFFIX, offset_of_name
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.bootstrap import FILE_NAME as BOOTSTRAP
from kraftd.metadata_dir.files.checkpoint import (
    SUFFIX,
    CheckpointReader,
    checkpoint_path,
    list_checkpoints,
    parse_checkpoint_name,
)
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch


class Checkpoint(NamedTuple):
    """A checkpoint replaces the log before its end offset; timestamp_ms is that of its last record."""

    path: str
    id: OffsetAndEpoch
    timestamp_ms: int


class DirectoryHistory:
    """The files of one path: a data directory, its __cluster_metadata-0, a segment or a checkpoint.

    log_start is the first offset of the log, None without a segment. Raises FileNotFoundError,
    DirectoryProblem.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._file: str | None = None
        self._directory = ""
        self.log_start: int | None = None
        if not disk.exists(path):
            raise FileNotFoundError(path)
        if not disk.exists(f"{path}/."):
            if not path.endswith((SUFFIX, f"/{BOOTSTRAP}")) and path != BOOTSTRAP:
                start = first_offset(disk, path)
                if start is None:
                    raise DirectoryProblem(f"{path} is neither a segment nor a checkpoint of a metadata log")
                if start > 0 or not is_checkpoint(disk, path):  # a copied checkpoint may have any name
                    self._file, self.log_start = path, start
            return
        directory = path.rstrip("/") or "/"
        for place in (f"{directory}/{PARTITION_DIRECTORY}", directory):
            bases = segment_bases(disk, place)
            if bases or list_checkpoints(disk, place)[0]:
                self._directory, self.log_start = place, min(bases, default=None)
                return
        raise DirectoryProblem(f"{path} holds no metadata log and no checkpoint of one")

    def __repr__(self) -> str:
        return f"<DirectoryHistory of {self.path}, log from {self.log_start}>"

    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints from which a replay can begin, oldest first. Raises CorruptStorage for a damaged
        one.
        """
        found = []
        if self._directory:
            paths = [
                (checkpoint_path(self._directory, one), one)
                for one in list_checkpoints(self._disk, self._directory)[0]
                if one.offset > 0
            ]
        elif self._file is None:
            name = self.path.rsplit("/", 1)[-1]
            paths = [(self.path, parse_checkpoint_name(name) or OffsetAndEpoch(0, 0))]
        else:
            paths = []
        for path, snapshot_id in paths:
            try:
                reader = CheckpointReader(self._disk, path)
            except FileNotFoundError:
                continue  # deleted since it was listed
            found.append(Checkpoint(path, snapshot_id, reader.header.last_contained_log_timestamp_ms))
            reader.close()
        return found

    def open_checkpoint(self, checkpoint: Checkpoint) -> CheckpointReader:
        """Open a checkpoint for reading. Raises FileNotFoundError, CorruptStorage."""
        return CheckpointReader(self._disk, checkpoint.path)

    def reader(self, start: int) -> SegmentReader:
        """The log from an offset on."""
        return SegmentReader(self._disk, self._directory, start, file=self._file)

    @property
    def log_end(self) -> int:
        """The offset after the last whole batch, 0 without a segment. Raises CorruptStorage."""
        if self.log_start is None:
            return 0
        last = self.log_start if self._file is not None else max(segment_bases(self._disk, self._directory))
        reader = self.reader(last)
        try:
            for _ in reader.batches():
                pass
        finally:
            reader.close()
        return reader.next_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        if self._file is not None:
            paths = [self._file]
        else:
            names = self._disk.list_names(self._directory) if self._directory else []
            paths = [f"{self._directory}/{name}" for name in names if name.endswith(LOG_SUFFIX)]
        total = 0
        for path in paths:
            try:
                file = self._disk.open(path)
            except FileNotFoundError:
                continue
            total += file.size_bytes()
            file.close()
        return total


def segment_bases(disk: Disk, directory: str) -> list[int]:
    """The first offsets of a directory's segments, in no order."""
    return [
        base
        for one in disk.list_names(directory)
        if one.endswith(LOG_SUFFIX) and (base := offset_of_name(one)) is not None
    ]


def is_checkpoint(disk: Disk, path: str) -> bool:
    """Return whether a file begins as a checkpoint does."""
    try:
        CheckpointReader(disk, path).close()
    except CorruptStorage:
        return False
    return True
