"""The segments and checkpoints at a path, and their node and cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftd.log.segment import LOG_SUFFIX, offset_of_name, scan
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import SUFFIX, parse_checkpoint_name
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.metadata_dir.files.meta_properties import check_keys_are_unique, decode_identity
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import (
    StoredFile,
    absolute,
    join,
    kind_of,
    list_files,
    read_bytes,
    size_of,
    split_name,
)
from kraftd.types import uuid_text
from kraftd.wire.batch import CorruptBatch, decompressed, records

_FIRST_BYTES = 64 << 10
_FRAME = b"\x01"
"""The first byte of every metadata record: the version of its frame."""


@dataclass(frozen=True)
class SegmentFile:
    """A `.log` file; base_offset is that of its name."""

    path: str
    base_offset: int
    size_bytes: int


@dataclass(frozen=True)
class CheckpointFile:
    """A `.checkpoint` file: the state up to end_offset, which is the first offset it does not cover."""

    path: str
    end_offset: int
    epoch: int
    size_bytes: int


@dataclass(frozen=True)
class Replica:
    """The files of one replica of the metadata log. The ids are None without a meta.properties."""

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    segments: tuple[SegmentFile, ...]
    checkpoints: tuple[CheckpointFile, ...]

    def __repr__(self) -> str:
        return (
            f"<Replica {self.path} of node {self.node_id}, {len(self.segments)} segments, "
            f"{len(self.checkpoints)} checkpoints>"
        )


def find_replica(path: str) -> Replica:
    """The replica at a path: a node's directory, its __cluster_metadata-0, one segment or one checkpoint.

    Raises InputError for a path that is none of these, and for a meta.properties that cannot be read.
    """
    path = absolute(path)
    kind = kind_of(path)
    if kind == "missing":
        raise InputError(f"{path}: no such file or directory")
    if kind == "file":
        directory, name = split_name(path)
        files = [(name, size_of(path))]
        partition = directory
    else:
        partition = join(path, PARTITION_DIRECTORY)
        files = list_files(partition)
        if not files:
            partition, files = path, list_files(path)
    segments = _segments(partition, files)
    checkpoints = _checkpoints(partition, files)
    if not segments and not checkpoints:
        what = "is no segment and no checkpoint" if kind == "file" else "holds no segment and no checkpoint"
        raise InputError(f"{path}: {what} of a metadata log; give a node's metadata.log.dir")
    properties = None
    for directory in (path, partition, split_name(partition)[0]):
        properties = _read_properties(directory)
        if properties is not None:
            break
    cluster_id, node_id, directory_id = properties or (None, None, None)
    return Replica(path, cluster_id, node_id, directory_id, tuple(segments), tuple(checkpoints))


def find_replicas(paths: Sequence[str]) -> list[Replica]:
    """The replicas at several paths, of one cluster. Raises InputError, also for mixed cluster ids."""
    if not paths:
        raise InputError("no input: give a node's metadata.log.dir, a segment or a checkpoint")
    found = [find_replica(path) for path in dict.fromkeys(absolute(path) for path in paths)]
    first = next((replica for replica in found if replica.cluster_id is not None), None)
    for replica in found:
        if first is not None and replica.cluster_id not in (None, first.cluster_id):
            raise InputError(
                f"{replica.path} belongs to cluster {replica.cluster_id}, {first.path} to cluster "
                f"{first.cluster_id}; give directories of one cluster"
            )
    return found


def refuse_ordinary_records(replica: Replica) -> None:
    """Raises InputError if the first record of the log is that of an ordinary topic."""
    for segment in replica.segments:
        file = StoredFile(segment.path)
        try:
            for batch in scan(file, 0, file.size_bytes(), chunk_bytes=_FIRST_BYTES):
                if batch.header.is_control:
                    continue
                first = next(iter(records(decompressed(batch))), None)
                if first is not None and (first.key is not None or bytes(first.value or b"")[:1] != _FRAME):
                    raise InputError(
                        f"{segment.path}: offset {batch.header.base_offset}: a record of an ordinary topic, "
                        "not of the metadata log; give a controller's metadata.log.dir"
                    )
                return
        except CorruptBatch:
            return  # the read that follows reports damage
        finally:
            file.close()


def _segments(partition: str, files: Sequence[tuple[str, int]]) -> list[SegmentFile]:
    found = []
    for name, size in files:
        offset = offset_of_name(name) if name.endswith(LOG_SUFFIX) else None
        if offset is not None:
            found.append(SegmentFile(join(partition, name), offset, size))
    return sorted(found, key=lambda segment: segment.base_offset)


def _checkpoints(partition: str, files: Sequence[tuple[str, int]]) -> list[CheckpointFile]:
    found = []
    for name, size in files:
        snapshot_id = parse_checkpoint_name(name) if name.endswith(SUFFIX) else None
        if snapshot_id is not None:
            found.append(CheckpointFile(join(partition, name), snapshot_id.offset, snapshot_id.epoch, size))
    return sorted(found, key=lambda checkpoint: (checkpoint.end_offset, checkpoint.epoch))


def _read_properties(directory: str) -> tuple[str | None, int | None, str | None] | None:
    path = join(directory, META_PROPERTIES)
    if kind_of(path) == "directory":
        raise InputError(f"{path}: it is a directory, and must be a file. Move it away")
    data = read_bytes(path)
    if data is None:
        return None
    try:
        check_keys_are_unique(data)
        found = decode_identity(data)
    except ValueError as error:
        remedy = "Correct it, or take it away: without it the cluster is not known, and not compared"
        raise InputError(f"{path}: {error}. {remedy}") from None
    return (
        found.cluster_id,
        found.node_id,
        None if found.directory_id is None else uuid_text(found.directory_id),
    )
