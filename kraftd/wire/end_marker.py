"""The control batch that ends a producer's transaction in a partition."""

from __future__ import annotations

from struct import Struct as Layout

from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch, CorruptBatch
from kraftd.wire.records import build_records_batch, decode_records

_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_KEY = Layout(">hh")  # its version, the type of the control record
_VALUE = Layout(">hi")  # its version, the coordinator's epoch
_ABORT, _COMMIT = 0, 1


class EndMarker(NamedTuple):
    """What a control batch says of the transaction that it ends."""

    is_commit: bool
    coordinator_epoch: int
    timestamp_ms: int


def read_end_marker(batch: Batch) -> EndMarker | None:
    """The marker in a control batch; None if its record is gone.

    Raises CorruptBatch, also if it ends no transaction.
    """
    if batch.header.record_count == 0:
        return None
    record = decode_records(batch)[0]
    key, value = record.key or b"", record.value or b""
    kind = _KEY.unpack_from(key)[1] if len(key) >= _KEY.size else None
    version, coordinator_epoch = _VALUE.unpack_from(value) if len(value) >= _VALUE.size else (-1, -1)
    if kind not in (_ABORT, _COMMIT) or version < 0:
        raise CorruptBatch("the control batch ends no transaction", batch.position)
    return EndMarker(kind == _COMMIT, coordinator_epoch, record.timestamp_ms)


def build_end_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    is_commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytearray:
    """A batch of one record; its offset and leader epoch are still to be set."""
    key = _KEY.pack(0, _COMMIT if is_commit else _ABORT)
    return bytearray(
        build_records_batch(
            [(timestamp_ms, key, _VALUE.pack(0, coordinator_epoch), ())],
            base_offset=0,
            leader_epoch=-1,
            attributes=_TRANSACTIONAL | _CONTROL,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
    )
