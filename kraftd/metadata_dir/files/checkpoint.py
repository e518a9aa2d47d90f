"""Checkpoints: the snapshot files of the log (KIP-630), and bootstrap.checkpoint, which has the same format.

A checkpoint is a header batch (SnapshotHeader and, with kraft.version 1, KRaftVersion and Voters), batches of
metadata records, and a footer batch; offsets count from 0. It is written as `.part`, synced, and renamed: a
file with the final name is whole and never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from kraftd.log.disk import Disk, File
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import scan
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.messages.voters_record import VotersRecord
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import (
    Batch,
    ControlRecordType,
    CorruptBatch,
    batch_size_bytes,
    build_batch,
    build_control_batch,
    control_records,
    values,
)
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_runs

SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
DAMAGED_SUFFIX = ".damaged"  # appended to the whole name: kept for the operator, never read
BOOTSTRAP_ID = OffsetAndEpoch(0, 0)
MAX_BATCH_BYTES = 8 << 20


def by_epoch(snapshot_id: OffsetAndEpoch) -> tuple[int, int]:
    """The order of snapshot ids: by epoch, then by offset."""
    return snapshot_id.epoch, snapshot_id.offset


def checkpoint_name(snapshot_id: OffsetAndEpoch) -> str:
    """`00000000000000205268-0000000005.checkpoint`."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


def checkpoint_path(directory: str, snapshot_id: OffsetAndEpoch) -> str:
    return f"{directory}/{checkpoint_name(snapshot_id)}"


def parse_checkpoint_name(name: str) -> OffsetAndEpoch | None:
    """The id in a name with either suffix; None for a file that is no checkpoint."""
    if not name.endswith((SUFFIX, PART_SUFFIX, DELETED_SUFFIX)):
        return None
    offset, dash, epoch = name[:20], name[20:21], name[21:31]
    if dash != "-" or not (
        offset.isdecimal() and len(offset) == 20 and epoch.isdecimal() and len(epoch) == 10
    ):
        return None
    return OffsetAndEpoch(int(offset), int(epoch))


def list_checkpoints(disk: Disk, directory: str) -> tuple[list[OffsetAndEpoch], list[str]]:
    """(ids of the whole checkpoints in order, names of the leftovers: unfinished or marked as deleted)."""
    found, leftovers = [], []
    for name in disk.list_names(directory):
        snapshot_id = parse_checkpoint_name(name)
        if snapshot_id is None:
            continue
        if name.endswith(SUFFIX):
            found.append(snapshot_id)
        else:
            leftovers.append(name)
    return sorted(found, key=by_epoch), leftovers


def find_download(disk: Disk, directory: str) -> tuple[OffsetAndEpoch, int] | None:
    """The newest unfinished download, and its size in bytes."""
    newest = None
    for name in disk.list_names(directory):
        snapshot_id = parse_checkpoint_name(name)
        if snapshot_id is not None and name == part_name(snapshot_id, download=True):
            newest = snapshot_id if newest is None else max(newest, snapshot_id, key=by_epoch)
    if newest is None:
        return None
    file = disk.open(f"{directory}/{part_name(newest, download=True)}")
    try:
        return newest, file.size_bytes()
    finally:
        file.close()


# --- writing ------------------------------------------------------------------------------------------


def part_name(snapshot_id: OffsetAndEpoch, *, download: bool) -> str:
    """The name of an unfinished checkpoint. After a crash a download is resumed and a local checkpoint is
    not; the name shows which it is.
    """
    name = checkpoint_name(snapshot_id)
    return f"{name}.part" if download else f"{name.removesuffix(SUFFIX)}-made{PART_SUFFIX}"


class PartFile:
    """The `.part` of a checkpoint: bytes in order, then freeze.

    A download keeps the first position bytes of an existing file; otherwise it begins empty.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        snapshot_id: OffsetAndEpoch,
        position: int = 0,
        *,
        download: bool = True,
    ) -> None:
        self.snapshot_id = snapshot_id
        self.path = f"{directory}/{part_name(snapshot_id, download=download)}"
        self.size_bytes = position
        self.unsynced_bytes = position
        self._directory = directory
        self._disk = disk
        disk.make_directory(directory)
        if position == 0:
            disk.remove(self.path)
        self._file: File = disk.open(self.path, create=True)
        if position:
            self._file.truncate(position)

    def __repr__(self) -> str:
        return f"<PartFile {self.snapshot_id}, {self.size_bytes} bytes>"

    def append(self, data: bytes | memoryview) -> None:
        """Append bytes. Raises DiskFull, after which it may be called again, or another StorageError."""
        self._file.write(self.size_bytes, data)
        self.size_bytes += len(data)
        self.unsynced_bytes += len(data)

    def sync(self) -> None:
        """Make the bytes so far durable, so that less is left for the end. Raises StorageFailure."""
        self._file.sync()
        self.unsynced_bytes = 0

    def freeze(self, check: Callable[[Disk, str], object] | None = None) -> None:
        """Sync the file, make it read-only, and rename it durably. Raises StorageFailure, or DiskFull, after
        which it may be called again.

        If check raises, the file gets no name and can only be abandoned.
        """
        self.sync()
        if check is not None:
            check(self._disk, self.path)
        self._disk.set_read_only(self.path)
        self._disk.rename(self.path, checkpoint_path(self._directory, self.snapshot_id))
        self._file.close()
        self._disk.sync_directory(self._directory)

    def close(self) -> None:
        """Close the file and keep it, to be resumed."""
        self._file.close()

    def abandon(self) -> None:
        """Delete the file."""
        self._file.close()
        self._disk.remove(self.path)


class CheckpointWriter:
    """Writes a checkpoint out of metadata records. Blocks on the disk.

    kraft_version 0 has neither a KRaftVersion nor a Voters record; with 1, voters may still be None.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        snapshot_id: OffsetAndEpoch,
        *,
        last_contained_log_timestamp_ms: int,
        now_ms: int,
        kraft_version: int = 0,
        voters: VotersRecord | None = None,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        if kraft_version == 0 and voters is not None:
            raise ValueError("a checkpoint of kraft.version 0 cannot hold a voter set")
        self._part = PartFile(disk, directory, snapshot_id, download=False)
        self._epoch = snapshot_id.epoch
        self._now_ms = now_ms
        self._max_batch_bytes = max_batch_bytes
        self._next_offset = 0
        header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms)
        records: list[tuple[ControlRecordType, Message, int]] = [
            (ControlRecordType.SNAPSHOT_HEADER, header, 0)
        ]
        if kraft_version > 0:
            version = KRaftVersionRecord(kraft_version=kraft_version)
            records.append((ControlRecordType.KRAFT_VERSION, version, 0))
            if voters is not None:
                records.append((ControlRecordType.KRAFT_VOTERS, voters, 0))
        try:
            self._append_control(records)
        except BaseException:
            self._part.abandon()
            raise

    def __repr__(self) -> str:
        return f"<CheckpointWriter {self._part.snapshot_id}, {self._next_offset} records>"

    def append(self, record_values: Sequence[bytes]) -> None:
        """Append framed metadata records, in as many batches as they need. One too long for a batch raises
        ValueError.
        """
        for part in split_values(record_values, self._max_batch_bytes):
            self._part.append(build_batch(part, self._next_offset, self._epoch, self._now_ms))
            self._next_offset += len(part)

    def freeze(self, check: Callable[[Disk, str], object] | None = None) -> int:
        """Write the footer and name the file, unless check raises; returns its size in bytes."""
        self._append_control([(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 0)])
        self._part.freeze(check)
        return self._part.size_bytes

    def abandon(self) -> None:
        self._part.abandon()

    def _append_control(self, records: list[tuple[ControlRecordType, Message, int]]) -> None:
        self._part.append(build_control_batch(records, self._next_offset, self._epoch, self._now_ms))
        self._next_offset += len(records)


def split_values(record_values: Sequence[bytes], max_batch_bytes: int) -> Iterator[Sequence[bytes]]:
    """Runs of values that fit into a batch each. Raises ValueError for a value that fits into none."""
    # The most that a record takes beside its value: four varints of five bytes and three single bytes.
    most_bytes = batch_size_bytes([]) + sum(map(len, record_values)) + 23 * len(record_values)
    if most_bytes <= max_batch_bytes and record_values:
        yield record_values
        return
    first = 0
    size = batch_size_bytes([])
    for at, value in enumerate(record_values):
        need = len(value) + 23
        if size + need > max_batch_bytes:
            if batch_size_bytes([value]) > max_batch_bytes:
                raise ValueError(
                    f"a record of {len(value)} bytes does not fit into a batch of {max_batch_bytes}"
                )
            if at > first:
                yield record_values[first:at]
            first, size = at, batch_size_bytes([])
        size += need
    if first < len(record_values):
        yield record_values[first:]


# --- reading ------------------------------------------------------------------------------------------


class CheckpointHeader(NamedTuple):
    """The content of the header batch. kraft_version is 0 if it holds none."""

    last_contained_log_timestamp_ms: int
    kraft_version: int
    voters: VotersRecord | None


class CheckpointReader:
    """Reads a checkpoint from front to back and checks it on the way: header, footer, checksums, offsets.

    Raises FileNotFoundError, and CorruptStorage from the constructor or the iteration.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._file = disk.open(path)
        self.size_bytes = self._file.size_bytes()
        self.position = 0  # of the batch that was read last
        self.header = self._read_header()

    def __repr__(self) -> str:
        return f"<CheckpointReader {self.path}, {self.size_bytes} bytes>"

    def batches(self) -> Iterator[Batch]:
        """The batches of metadata records; each batch's position is that in the file."""
        expected = 0
        footer = False
        for batch in self._scan():
            if batch.header.base_offset != expected or footer:
                what = "follows the footer" if footer else f"follows offset {expected - 1}"
                raise self._corrupt(batch.position, f"a batch of offset {batch.header.base_offset} {what}")
            expected = batch.header.next_offset
            self.position = batch.position
            if not batch.header.is_control:
                yield batch
            elif batch.position:
                footer = any(
                    record.type == ControlRecordType.SNAPSHOT_FOOTER for record in control_records(batch)
                )
        if not footer:
            raise self._corrupt(self.size_bytes, "the footer is missing, the file is not whole")

    def values(self) -> Iterator[list[memoryview]]:
        """The framed metadata records, one list per batch."""
        for batch in self.batches():
            try:
                yield values(batch)
            except CorruptBatch as error:
                raise self._corrupt(error.position, error.reason) from None

    def runs(self) -> Iterator[list[Message]]:
        """The metadata records, some at a time. Also raises ProtocolError, for a value that is no record."""
        for batch in self.batches():
            try:
                yield from decode_runs(batch)
            except CorruptBatch as error:
                raise self._corrupt(error.position, error.reason) from None

    def control_batches(self) -> Iterator[Batch]:
        """The control batches, header first, with the voters' history; nothing else is checked."""
        return (batch for batch in self._scan() if batch.header.is_control)

    def leading_control_batches(self) -> Iterator[Batch]:
        """The control batches before all metadata records: header, KRaftVersion, Voters."""
        return takewhile(lambda batch: batch.header.is_control, self._scan())

    def close(self) -> None:
        self._file.close()

    def _scan(self) -> Iterator[Batch]:
        try:
            yield from scan(self._file, 0, self.size_bytes)
        except CorruptBatch as error:
            raise self._corrupt(error.position, error.reason) from None

    def _read_header(self) -> CheckpointHeader:
        first = next(self._scan(), None)
        found = control_records(first) if first is not None and first.header.is_control else []
        if not found or not isinstance(found[0].message, SnapshotHeaderRecord):
            raise self._corrupt(0, "it does not begin with a snapshot header")
        kraft_version, voters = 0, None
        for record in found[1:]:
            if isinstance(record.message, KRaftVersionRecord):
                kraft_version = record.message.kraft_version
            elif isinstance(record.message, VotersRecord):
                voters = record.message
        return CheckpointHeader(found[0].message.last_contained_log_timestamp, kraft_version, voters)

    def _corrupt(self, position: int, reason: str) -> CorruptStorage:
        return CorruptStorage(
            self.path,
            position,
            None,
            reason,
            "Move the file aside; an older checkpoint or the leader has the rest",
        )


def verify_checkpoint(disk: Disk, path: str) -> int:
    """Read a checkpoint whole: header, footer, checksums and offsets; returns its size in bytes.

    Raises CorruptStorage, FileNotFoundError.
    """
    reader = CheckpointReader(disk, path)
    try:
        for _ in reader.batches():
            pass
    finally:
        reader.close()
    return reader.size_bytes


def set_aside(disk: Disk, directory: str, snapshot_id: OffsetAndEpoch) -> str:
    """Rename a damaged checkpoint, durably, so that it is not read again; returns its new name."""
    path = checkpoint_path(directory, snapshot_id)
    disk.rename(path, path + DAMAGED_SUFFIX)
    disk.sync_directory(directory)
    return path + DAMAGED_SUFFIX
