"""Batches as a group coordinator has them in its partition."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kraftd.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, build_records_batch

TRANSACTIONAL, CONTROL = 0x10, 0x20


def keyed_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    attributes: int = 0,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """One uncompressed batch; without a value a record is a tombstone."""
    is_transactional = producer_id != NO_PRODUCER_ID
    return bytes(
        build_records_batch(
            [(timestamp_ms, key, value, ()) for key, value in records],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=attributes | (TRANSACTIONAL if is_transactional else 0),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def marker_batch(
    base_offset: int, producer_id: int, producer_epoch: int, is_commit: bool, coordinator_epoch: int = 0
) -> bytes:
    """The control batch that ends a transaction."""
    record = struct.pack(">hh", 0, int(is_commit)), struct.pack(">hi", 0, coordinator_epoch)
    return keyed_batch([record], base_offset, 0, 0, producer_id, producer_epoch, CONTROL)
