"""The control batch that ends a producer's transaction in a partition."""

from __future__ import annotations

from struct import Struct as Layout

from kraftd.wire.records import build_records_batch

_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_KEY = Layout(">hh")  # its version, the type of the control record
_VALUE = Layout(">hi")  # its version, the coordinator's epoch
_ABORT, _COMMIT = 0, 1


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
