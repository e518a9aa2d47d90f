"""`<offset>.snapshot`: the producers of a partition as they were before an offset (Kafka's ProducerSnapshot).

The file has version 1, the checksum of all that follows it, and the entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.wire.crc32c import crc32c

_HEAD = Struct(">hII")  # version, checksum of what follows it, count
_ENTRY = Struct(">qhiqiqiq")
_VERSION = 1
_CRC_END = 6


class SnapshotEntry(NamedTuple):
    """A producer as a `.snapshot` file has it: of its batches only the last.

    offset_delta: the batch's last sequence less its first. -1 stands for none in last_sequence, last_offset,
    coordinator_epoch and current_txn_first_offset.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


class CorruptSnapshot(ValueError):
    """The bytes are no snapshot of producers."""


def encode_producers(entries: Iterable[SnapshotEntry]) -> bytes:
    """Content of the file."""
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = b"".join(packed)
    checksum = crc32c(len(packed).to_bytes(4, "big") + body)
    return _HEAD.pack(_VERSION, checksum, len(packed)) + body


def decode_producers(data: bytes) -> list[SnapshotEntry]:
    """The entries of a file. Raises CorruptSnapshot."""
    if len(data) < _HEAD.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too short for a snapshot of producers")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, not {_VERSION}")
    if crc32c(memoryview(data)[_CRC_END:]) != checksum:
        raise CorruptSnapshot("the checksum is wrong")
    if len(data) < _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries cannot be in {len(data)} bytes")
    return [SnapshotEntry(*_ENTRY.unpack_from(data, _HEAD.size + at * _ENTRY.size)) for at in range(count)]
