"""`bootstrap.checkpoint`: the first records of a new cluster, which its first leader writes into the log."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.wire.batch import (
    ControlRecordType,
    CorruptBatch,
    build_batch,
    build_control_batch,
    iter_batches,
    values,
)
from kraftd.wire.errors import ProtocolError
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record

FILE_NAME = "bootstrap.checkpoint"


def encode_bootstrap(records: Sequence[VersionedRecord], now_ms: int) -> bytes:
    """A header batch, one batch of the records, a footer batch."""
    header = (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(), 0)
    footer = (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 0)
    return b"".join(
        (
            build_control_batch([header], 0, 0, now_ms),
            build_batch([encode_record(record) for record in records], 1, 0, now_ms),
            build_control_batch([footer], 1 + len(records), 0, now_ms),
        )
    )


def write_bootstrap(disk: Disk, directory: str, records: Sequence[VersionedRecord], now_ms: int) -> None:
    """Write the file; it is durable on return."""
    write_atomically(disk, f"{directory}/{FILE_NAME}", encode_bootstrap(records, now_ms))


def read_bootstrap(disk: Disk, directory: str) -> list[VersionedRecord] | None:
    """The records; None without a file (then the defaults of the software apply).

    Raises CorruptStorage for damage, DirectoryProblem if metadata.version is not among them.
    """
    path = f"{directory}/{FILE_NAME}"
    try:
        data = disk.read_bytes(path)
    except FileNotFoundError:
        return None
    remedy = (
        "Take the file from another controller of the cluster; or, where this one has served before, move it "
        "aside: it counts at the first start only"
    )
    position = 0
    records: list[VersionedRecord] = []
    try:
        for batch in iter_batches(data):
            position = batch.position
            if not batch.header.is_control:
                records.extend(decode_record(value) for value in values(batch))
    except CorruptBatch as error:
        raise CorruptStorage(path, error.position, None, error.reason, remedy) from None
    except ProtocolError as error:
        raise CorruptStorage(path, position, None, str(error), remedy) from None
    if not any(
        isinstance(each.message, FeatureLevelRecord) and each.message.name == "metadata.version"
        for each in records
    ):
        raise DirectoryProblem(f"{path} holds no metadata.version. {remedy}")
    return records
