"""The records of a coordinator's partition in order, and the markers that end transactions in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from kraftd.groups.records import CoordinatorRecord, UnknownRecordType, UnreadableRecord
from kraftd.log.segment import scan
from kraftd.named_tuple import NamedTuple
from kraftd.spark.coordinators.partitions import PartitionFiles
from kraftd.spark.errors import InputError, damaged
from kraftd.spark.inputs.planning import walk_headers
from kraftd.spark.inputs.storage import StoredFile
from kraftd.wire.batch import Batch, BatchHeader, CorruptBatch, RecordView, decompressed, records

_MARKER = Struct(">hh")  # version and type of a control record's key
_TRANSACTIONAL = 0x10
COMMIT = 1


class Place(NamedTuple):
    """Where a record is, and when it was appended; the producer ids are -1 outside a transaction."""

    offset: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    is_commit: bool


Decode = Callable[[memoryview | None, memoryview | None], CoordinatorRecord]


def read_partition(
    files: PartitionFiles, decode: Decode, until_ms: int | None
) -> Iterator[tuple[Place, CoordinatorRecord | Marker]]:
    """The committed records that are no later than a time. Raises InputError for damage.

    Records of a type that is not known are left out.
    """
    for path, batch in _batches(files):
        header = batch.header
        producer = (
            (header.producer_id, header.producer_epoch) if header.attributes & _TRANSACTIONAL else (-1, -1)
        )
        for view in records(decompressed(batch)):
            if until_ms is not None and view.timestamp_ms > until_ms:
                continue
            if files.end_offset is not None and view.offset >= files.end_offset:
                return
            place = Place(view.offset, view.timestamp_ms, *producer)
            found = _marker(view) if header.is_control else _decoded(view, decode, path)
            if found is not None:
                yield place, found


def read_headers(files: PartitionFiles) -> Iterator[BatchHeader]:
    """The headers of the committed batches of any partition, without their records."""
    for path in files.segments:
        file = StoredFile(path)
        try:
            for _, header in walk_headers(file, 0, file.size_bytes()):
                if files.end_offset is not None and header.base_offset >= files.end_offset:
                    return
                yield header
        finally:
            file.close()


def _batches(files: PartitionFiles) -> Iterator[tuple[str, Batch]]:
    for path in files.segments:
        file = StoredFile(path)
        try:
            for batch in scan(file, 0, file.size_bytes()):
                if files.end_offset is not None and batch.header.base_offset >= files.end_offset:
                    return
                yield path, batch
        except CorruptBatch as error:
            if error.truncated and path == files.segments[-1] and files.end_offset is None:
                return  # a torn tail: a crash leaves one, and so does a writer at work
            raise damaged(path, error.position, error.reason) from None
        finally:
            file.close()


def _decoded(view: RecordView, decode: Decode, path: str) -> CoordinatorRecord | None:
    try:
        return decode(view.key, view.value)
    except UnknownRecordType:
        return None
    except UnreadableRecord as error:
        raise InputError(f"{path}: offset {view.offset}: {error}") from None


def _marker(view: RecordView) -> Marker | None:
    """None for a control record of another kind."""
    kind = -1 if view.key is None or len(view.key) < _MARKER.size else _MARKER.unpack_from(view.key)[1]
    return Marker(kind == COMMIT) if kind in (0, COMMIT) else None
