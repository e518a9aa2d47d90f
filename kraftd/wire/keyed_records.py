"""Records with keys, headers and timestamps of their own, as producers write and consumers read them."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch
from kraftd.wire.records import build_records_batch, decode_records

_NO_PRODUCER = (-1, -1, -1)

Header = tuple[str, bytes | None]


class KeyedRecord(NamedTuple):
    """A record of a user; None is a null key or value, a timestamp of -1 is the time of the batch."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int = -1


class StoredRecord(NamedTuple):
    """A record with the offset that it has in its partition."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def build_keyed_batch(
    batch: Sequence[KeyedRecord],
    now_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = _NO_PRODUCER,
    attributes: int = 0,
) -> bytes:
    """One uncompressed batch of these records. `producer` is its id, its epoch and the first sequence number.

    Raises ValueError when there is no record.
    """
    rows = [
        (
            now_ms if one.timestamp_ms < 0 else one.timestamp_ms,
            one.key,
            one.value,
            [(name.encode(), value) for name, value in one.headers],
        )
        for one in batch
    ]
    producer_id, producer_epoch, base_sequence = producer
    return bytes(
        build_records_batch(
            rows,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def read_keyed_records(batch: Batch) -> list[StoredRecord]:
    """The records of a batch, decompressed if necessary; none of a control batch.

    Raises CorruptBatch.
    """
    if batch.header.is_control:
        return []
    return [
        StoredRecord(
            one.offset,
            one.timestamp_ms,
            one.key,
            one.value,
            tuple((str(name, "utf-8", "replace"), value) for name, value in one.headers),
        )
        for one in decode_records(batch)
    ]
