"""A backup: the newest snapshot of a quorum, its committed log behind that, and a manifest.

The files lie in `__cluster_metadata-0`, as in a data directory, so every reader of one reads a backup too.
The manifest, `backup.json`, is written last and atomically: a directory without it is no backup.
"""

from __future__ import annotations

import hashlib

import msgspec

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    PartFile,
    checkpoint_path,
    verify_checkpoint,
)
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.named_tuple import NamedTuple
from kraftd.redaction.pieces import RedactedPieces
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import Batch

MANIFEST = "backup.json"
FORMAT = 1
_READ_BYTES = 4 << 20
_AGAIN = "Delete the directory and take the backup again"
_REMEDY = "Restore from another backup; this one was changed or damaged after it was taken"


class BackedUpFile(NamedTuple):
    """A file of a backup, by its path below the backup's directory."""

    path: str
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds: everything of a cluster before `end_offset`, whose last record is of `epoch`.

    `time_ms` is the timestamp of that record, `taken_ms` when the backup was taken (both -1 where unknown).
    `log_start` is the first offset of the log beside the snapshot. A redacted backup has no secrets.
    """

    cluster_id: str
    end_offset: int
    epoch: int
    time_ms: int
    taken_ms: int
    log_start: int
    files: list[BackedUpFile]
    redacted: bool = False
    format: int = FORMAT


class BackupWriter:
    """Writes a backup: begin_snapshot, its pieces and end_snapshot if there is a snapshot, then batches, then
    finish. With `redacted` no secret reaches the disk.

    Raises DirectoryProblem for a directory that holds something, DiskFull, StorageFailure.
    """

    def __init__(self, disk: Disk, directory: str, *, redacted: bool = False) -> None:
        if is_occupied(disk, directory):
            raise DirectoryProblem(
                f"{directory} is not empty. Name a new directory for the backup; if one that was interrupted "
                "left this one, delete it first"
            )
        self.directory = directory
        self._disk = disk
        self._partition = f"{directory}/{PARTITION_DIRECTORY}"
        self._part: PartFile | None = None
        self._redaction = RedactedPieces() if redacted else None
        self._log: MetadataLog | None = None
        self._end = OffsetAndEpoch(0, 0)
        self._time_ms = -1
        disk.make_directory(self._partition)

    def __repr__(self) -> str:
        return f"<BackupWriter {self.directory}, so far {self._end}>"

    def begin_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Begin the snapshot that replaces the log before its end offset; comes before all batches."""
        self._part = PartFile(self._disk, self._partition, snapshot_id)

    def append_snapshot(self, piece: bytes) -> None:
        """Write the next bytes of the snapshot. Raises CorruptBatch, if it is redacted."""
        assert self._part is not None
        self._part.append(piece if self._redaction is None else self._redaction.append(piece))

    def end_snapshot(self) -> None:
        """Finish the snapshot. Raises CorruptStorage if it is not whole."""
        assert self._part is not None
        if self._redaction is not None and self._redaction.held_bytes:
            reason = f"{self._redaction.held_bytes} bytes at its end are no whole batch"
            raise CorruptStorage(self._part.path, self._part.size_bytes, None, reason, _AGAIN)
        self._part.freeze(verify_checkpoint)
        self._end = self._part.snapshot_id
        reader = CheckpointReader(self._disk, checkpoint_path(self._partition, self._end))
        self._time_ms = reader.header.last_contained_log_timestamp_ms
        reader.close()

    def append(self, batch: Batch) -> None:
        """Write the next committed batch, unless the snapshot holds it."""
        if batch.header.next_offset <= self._end.offset:
            return
        if self._log is None:
            self._log = open_log(self._disk, self._partition).log
        self._log.append(batch.view if self._redaction is None else RedactedPieces().append(batch.view))
        self._end = OffsetAndEpoch(batch.header.next_offset, batch.header.leader_epoch)
        self._time_ms = batch.header.max_timestamp_ms

    def finish(self, cluster_id: str, taken_ms: int) -> Manifest:
        """Sync everything, then write the manifest, which makes the directory a backup."""
        log = self._log or open_log(self._disk, self._partition).log
        log.close()
        for name in self._disk.list_names(self._partition):
            _sync(self._disk, f"{self._partition}/{name}")  # a log does not sync its indexes
        self._disk.sync_directory(self._partition)
        manifest = Manifest(
            cluster_id=cluster_id,
            end_offset=self._end.offset,
            epoch=self._end.epoch,
            time_ms=self._time_ms,
            taken_ms=taken_ms,
            log_start=log.log_start,
            redacted=self._redaction is not None,
            files=[
                _describe(self._disk, self.directory, f"{PARTITION_DIRECTORY}/{name}")
                for name in self._disk.list_names(self._partition)
            ],
        )
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
        write_atomically(self._disk, f"{self.directory}/{MANIFEST}", content)
        return manifest


def read_manifest(disk: Disk, directory: str) -> Manifest | None:
    """The manifest of a backup; None if there is none. Raises DirectoryProblem."""
    path = f"{directory}/{MANIFEST}"
    try:
        data = disk.read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DirectoryProblem(f"{path} is no manifest of a backup: {error}. {_REMEDY}") from None
    if manifest.format != FORMAT:
        raise DirectoryProblem(
            f"{path} is of format {manifest.format}, {FORMAT} is known here. Use the kraftd that took it"
        )
    return manifest


def verify_backup(disk: Disk, directory: str, manifest: Manifest) -> None:
    """Compare every file with the manifest. Raises DirectoryProblem, CorruptStorage naming the file."""
    for expected in manifest.files:
        if ".." in expected.path.split("/"):
            raise DirectoryProblem(f"{directory}/{MANIFEST} names {expected.path}. {_REMEDY}")
        try:
            found = _describe(disk, directory, expected.path)
        except FileNotFoundError:
            raise DirectoryProblem(f"{directory}/{expected.path} is missing. {_REMEDY}") from None
        if found != expected:
            reason = f"its {found.size_bytes} bytes are not the {expected.size_bytes} that were backed up"
            raise CorruptStorage(f"{directory}/{expected.path}", 0, None, reason, _REMEDY)


def is_occupied(disk: Disk, directory: str) -> bool:
    """Return whether a directory holds anything of a node or a backup; a lock file does not count."""
    names = [
        *disk.list_names(directory),
        *disk.list_names(f"{directory}/{PARTITION_DIRECTORY}"),
    ]
    return any(name != ".lock" for name in names)


def _sync(disk: Disk, path: str) -> None:
    file = disk.open(path)
    try:
        file.sync()
    finally:
        file.close()


def _describe(disk: Disk, directory: str, path: str) -> BackedUpFile:
    """The size and digest of a file. Raises FileNotFoundError."""
    digest = hashlib.sha256()
    file = disk.open(f"{directory}/{path}")
    try:
        size = file.size_bytes()
        for position in range(0, size, _READ_BYTES):
            digest.update(file.read(position, min(_READ_BYTES, size - position)))
    finally:
        file.close()
    return BackedUpFile(path, size, digest.hexdigest())
