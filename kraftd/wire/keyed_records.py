"""Records with keys, headers and timestamps of their own, as producers write and consumers read them."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from kraftd.wire.batch import Batch, CorruptBatch, read_varint, records
from kraftd.wire.crc32c import crc32c

_AFTER_CRC = Struct(">hiqqqhii")
_BEFORE_CRC = Struct(">qiibI")
_MAGIC = 2
_LOG_APPEND_TIME = 0x08  # the attribute of a batch whose time of appending counts for all of its records
_BYTES_BETWEEN_LENGTH_AND_CRC_END = 9
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


def zigzag(value: int) -> bytes:
    """A signed number as a varint of up to ten bytes."""
    left = (value << 1) ^ (value >> 63)
    parts = bytearray()
    while left > 0x7F:
        parts.append(left & 0x7F | 0x80)
        left >>= 7
    parts.append(left)
    return bytes(parts)


def build_keyed_batch(
    batch: Sequence[KeyedRecord],
    now_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = _NO_PRODUCER,
) -> bytes:
    """One uncompressed batch of these records. `producer` is its id, its epoch and the first sequence number.

    Raises ValueError when there is no record.
    """
    if not batch:
        raise ValueError("a batch holds at least one record")
    times_ms = [now_ms if one.timestamp_ms < 0 else one.timestamp_ms for one in batch]
    base_ms, max_ms = times_ms[0], max(times_ms)
    parts: list[bytes] = []
    for delta, (one, time_ms) in enumerate(zip(batch, times_ms, strict=True)):
        body = b"".join(
            (
                b"\x00",
                zigzag(time_ms - base_ms),
                zigzag(delta),
                _sized(one.key),
                _sized(one.value),
                zigzag(len(one.headers)),
                *(part for name, value in one.headers for part in (_sized(name.encode()), _sized(value))),
            )
        )
        parts += (zigzag(len(body)), body)
    count = len(batch)
    covered = _AFTER_CRC.pack(0, count - 1, base_ms, max_ms, *producer, count) + b"".join(parts)
    length = len(covered) + _BYTES_BETWEEN_LENGTH_AND_CRC_END
    return _BEFORE_CRC.pack(base_offset, length, leader_epoch, _MAGIC, crc32c(covered)) + covered


def read_keyed_records(batch: Batch) -> list[StoredRecord]:
    """The records of a batch, decompressed if necessary; none of a control batch.

    Raises CorruptBatch.
    """
    if batch.header.is_control:
        return []
    header = batch.header
    appended_ms = header.max_timestamp_ms if header.attributes & _LOG_APPEND_TIME else None
    found = []
    for one in records(batch):
        key = None if one.key is None else bytes(one.key)
        value = None if one.value is None else bytes(one.value)
        time_ms = one.timestamp_ms if appended_ms is None else appended_ms
        found.append(StoredRecord(one.offset, time_ms, key, value, _headers(one.rest, batch.position)))
    return found


def _headers(rest: memoryview, position: int) -> tuple[Header, ...]:
    """The headers in the bytes behind a record's value."""
    count, at = read_varint(rest, 0)
    found: list[Header] = []
    try:
        for _ in range(count):
            size, at = read_varint(rest, at)
            name = str(rest[at : at + size], "utf-8", "replace")
            size, at = read_varint(rest, at + size)
            value = bytes(rest[at : at + size]) if size >= 0 else None
            at += max(size, 0)
            found.append((name, value))
    except (IndexError, ValueError) as error:
        raise CorruptBatch(f"headers cannot be read: {error}", position) from None
    return tuple(found)


def _sized(data: bytes | None) -> bytes:
    """Bytes behind their length; -1 is the length of null."""
    return b"\x01" if data is None else zigzag(len(data)) + data
