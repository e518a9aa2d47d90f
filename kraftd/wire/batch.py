"""Record batches, format v2: written, replicated, checked and read as a whole.

A batch is a header of 61 bytes and its records. The checksum covers everything after itself, so the leader
epoch before it can be set without a new checksum. Controllers write uncompressed batches, with records that
have neither headers nor (outside control batches) keys; compressed ones are read.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Any

from kraftd.named_tuple import NamedTuple
from kraftd.wire.api import control_record_class
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.compression import CODEC_NAMES, DecompressionError, decompress
from kraftd.wire.crc32c import crc32c
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

HEADER_BYTES = 61
MAGIC = 2

_HEADER = Struct(">qiibIhiqqqhii")
_AFTER_CRC = Struct(">hiqqqhii")  # attributes to record count: the checksummed part of the header
_BEFORE_CRC = Struct(">qiibI")
LENGTH_END = 12  # the length field counts the bytes after it
_CRC_END = 21
_CONTROL = 0x20
_CODEC = 0x07
_ATTRIBUTES_LOW_AT = 22
_MIN_RECORD_BYTES = 7
_CONTROL_KEY = Struct(">hh")
_TUPLE_OF: Any = tuple.__new__  # makes a named tuple without checking the number of values


class CorruptBatch(ValueError):
    """The bytes are no valid batch. position is where the batch begins in them.

    truncated is true when nothing but more bytes was missing: a torn tail, or an unaligned piece of a file.
    """

    def __init__(self, reason: str, position: int, *, truncated: bool = False) -> None:
        super().__init__(f"batch at byte {position}: {reason}")
        self.reason = reason
        self.position = position
        self.truncated = truncated


class ControlRecordType(enum.IntEnum):
    """The type of a control record: the second int16 of its key (0 and 1 mark transactions)."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class BatchHeader(NamedTuple):
    """The 61 bytes before the records. length_bytes counts the bytes after the length field."""

    base_offset: int
    length_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length_bytes + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def compression(self) -> str:
        return CODEC_NAMES[self.attributes & _CODEC]


class Batch(NamedTuple):
    """One batch within larger bytes: view is exactly its bytes, position their beginning."""

    header: BatchHeader
    view: memoryview
    position: int

    def __repr__(self) -> str:
        header = self.header
        kind = "control batch" if header.is_control else "batch"
        return (
            f"<{kind} {header.base_offset}..{header.last_offset} epoch {header.leader_epoch}, "
            f"{header.record_count} records, {header.size_bytes} bytes at {self.position}>"
        )


class RecordView(NamedTuple):
    """One record; key and value are views of the batch's bytes, None where null."""

    offset: int
    timestamp_ms: int
    key: memoryview | None
    value: memoryview | None


class ControlRecord(NamedTuple):
    """One decoded control record. message and version are None where the type is unknown: to be skipped."""

    offset: int
    type: int
    message: Message | None
    version: int | None


@lru_cache(maxsize=1 << 14)
def signed_varint(value: int) -> bytes:
    """A non-negative number as a zig-zag varint."""
    value <<= 1
    if value < 0x80:
        return bytes((value,))
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


# The beginning of a metadata batch's record, by its offset delta: attributes 0, timestamp delta 0, the offset
# delta, key length -1. To grow, it is replaced as a whole, so that threads need no lock.
_record_starts_kept: list[bytes] = []
_MOST_KEPT = 1 << 17


def _record_starts(count: int) -> Iterable[bytes]:
    """The first count of them. A bounded number is kept; more are made anew."""
    global _record_starts_kept
    starts = _record_starts_kept
    if len(starts) < count:
        starts = [b"\x00\x00" + signed_varint(delta) + b"\x01" for delta in range(max(2 * count, 64))]
        if count <= _MOST_KEPT:
            _record_starts_kept = starts
    return islice(starts, count)


def batch_size_bytes(values: Sequence[bytes]) -> int:
    """Size of the batch that build_batch makes of these values, to compare with a limit."""
    total = HEADER_BYTES
    for delta, value in enumerate(values):
        body = 4 + len(signed_varint(delta)) + len(signed_varint(len(value))) + len(value)
        total += len(signed_varint(body)) + body
    return total


def build_batch(
    values: Sequence[bytes],
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    *,
    control_keys: Sequence[bytes] | None = None,
) -> bytes:
    """One uncompressed batch of these values, as Kafka's raft client builds it: every record at timestamp_ms.

    control_keys, one a value, make it a control batch. Raises ValueError when values is empty.
    """
    count = len(values)
    if count == 0:
        raise ValueError("a batch holds at least one record")
    if C_ENGINE is not None and control_keys is None:
        return C_ENGINE.build_batch(values, base_offset, leader_epoch, timestamp_ms, crc32c)
    varint = signed_varint
    parts: list[bytes] = [b"", b""]  # the header's place
    if control_keys is None:
        attributes = 0
        for start, value in zip(_record_starts(count), values, strict=True):
            size = len(value)
            size_varint = varint(size)
            parts += (varint(len(start) + len(size_varint) + size + 1), start, size_varint, value, b"\x00")
    else:
        attributes = _CONTROL
        for delta, (key, value) in enumerate(zip(control_keys, values, strict=True)):
            middle = b"".join((b"\x00\x00", varint(delta), varint(len(key)), key, varint(len(value))))
            parts += (varint(len(middle) + len(value) + 1), middle, value, b"\x00")
    parts[1] = _AFTER_CRC.pack(attributes, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    covered = b"".join(parts)
    parts = [
        _BEFORE_CRC.pack(
            base_offset, len(covered) + _CRC_END - LENGTH_END, leader_epoch, MAGIC, crc32c(covered)
        ),
        covered,
    ]
    return b"".join(parts)


def build_control_batch(
    records: Sequence[tuple[ControlRecordType, Message, int]],
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """One control batch of (type, message, version). Keys hold version 0 and the type."""
    return build_batch(
        [encode_bytes(message, version) for _, message, version in records],
        base_offset,
        leader_epoch,
        timestamp_ms,
        control_keys=[_CONTROL_KEY.pack(0, record_type) for record_type, _, _ in records],
    )


def parse_header(view: bytes | memoryview, position: int = 0, *, alone: bool = False) -> BatchHeader:
    """The header of the batch at position, its checksum not checked; with `alone`, records may be missing.

    Raises CorruptBatch: truncated, of another format, impossible length or counts.
    """
    end = len(view)
    if position + HEADER_BYTES > end:
        if position + _CRC_END - 4 <= end and view[position + 16] != MAGIC:
            raise CorruptBatch(f"format {view[position + 16]}, not {MAGIC}", position)
        raise CorruptBatch(
            f"{end - position} bytes are left, a header has {HEADER_BYTES}", position, truncated=True
        )
    header: BatchHeader = _TUPLE_OF(BatchHeader, _HEADER.unpack_from(view, position))
    if header.magic != MAGIC:
        raise CorruptBatch(f"format {header.magic}, not {MAGIC}", position)
    size = header.length_bytes + LENGTH_END
    if size < HEADER_BYTES:
        raise CorruptBatch(f"a length of {header.length_bytes} bytes is shorter than the header", position)
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptBatch(
            f"base offset {header.base_offset} or last offset delta {header.last_offset_delta} is negative",
            position,
        )
    _check_count(header, size, position)
    if position + size > end and not alone:
        raise CorruptBatch(f"{size} bytes long, {end - position} are left", position, truncated=True)
    return header


def _check_count(header: BatchHeader, size: int, position: int) -> None:
    """Check the count of records: a reader would allocate memory for a count that the bytes cannot hold. A
    compressed batch's is compared with the offsets here, and with the bytes after decompression.
    """
    compressed = header.attributes & _CODEC
    most = header.last_offset_delta + 1 if compressed else (size - HEADER_BYTES) // _MIN_RECORD_BYTES
    if not 0 <= header.record_count <= most:
        where = f"{most} offsets" if compressed else f"{size} bytes"
        raise CorruptBatch(f"{header.record_count} records cannot be in {where}", position)


def check_crc(view: memoryview, header: BatchHeader, position: int = 0) -> None:
    """Compare the checksum of the batch at position with its bytes. Raises CorruptBatch when they differ."""
    computed = crc32c(view[position + _CRC_END : position + header.size_bytes])
    if computed != header.crc:
        raise CorruptBatch(
            f"checksum {header.crc:#010x} is stored, {computed:#010x} computed (offset {header.base_offset})",
            position,
        )


def read_batch(data: bytes | memoryview, position: int = 0, *, verify: bool = True) -> Batch:
    """The batch at position; its checksum is checked unless verify is false. Raises CorruptBatch."""
    view = memoryview(data)
    header = parse_header(view, position)
    if verify:
        check_crc(view, header, position)
    end = position + header.length_bytes + LENGTH_END
    batch: Batch = _TUPLE_OF(Batch, (header, view[position:end], position))
    return batch


def iter_batches(data: bytes | memoryview, *, verify: bool = True) -> Iterator[Batch]:
    """Every batch of bytes that hold whole batches and nothing else, each verified unless `verify` is false.

    Raises CorruptBatch at the first invalid one, after yielding those before it.
    """
    view = memoryview(data)
    position, end = 0, len(view)
    while position < end:
        batch = read_batch(view, position, verify=verify)
        yield batch
        position += batch.header.length_bytes + LENGTH_END


def decompressed(batch: Batch) -> Batch:
    """The batch with its records decompressed; the same batch if they are not compressed.

    Attributes and view of the result say that nothing is compressed; length and checksum of its header are
    still those of the stored bytes. Raises CorruptBatch for an unknown codec, damaged data, or more than
    MAX_DECOMPRESSED_BYTES.
    """
    header, view, position = batch
    codec = header.attributes & _CODEC
    if not codec:
        return batch
    try:
        body = decompress(codec, view[HEADER_BYTES:])
    except DecompressionError as error:
        what = f"compressed with {header.compression} (offset {header.base_offset})"
        raise CorruptBatch(f"{what}: {error}", position) from None
    head = bytearray(view[:HEADER_BYTES])
    head[_ATTRIBUTES_LOW_AT] &= ~_CODEC
    header = header._replace(attributes=header.attributes & ~_CODEC)
    _check_count(header, HEADER_BYTES + len(body), position)
    return Batch(header, memoryview(bytes(head) + body), position)


def records(batch: Batch) -> list[RecordView]:
    """The records of a batch, keys and values as views of its bytes, decompressed if necessary.

    Raises CorruptBatch (its position the batch's) as `decompressed` does, and for every record that does not
    fit its batch: lengths past the end, offsets out of order, a count that differs.
    """
    batch = decompressed(batch)
    header, view, _ = batch
    end, pos = len(view), HEADER_BYTES
    base_offset, base_timestamp_ms = header.base_offset, header.base_timestamp_ms
    last_delta, previous_delta = header.last_offset_delta, -1
    found: list[RecordView] = []
    try:
        for _ in range(header.record_count):
            size, pos = read_varint(view, pos)
            record_end = pos + size
            if size <= 0 or record_end > end:
                raise CorruptBatch(f"record {len(found)} claims {size} bytes", batch.position)
            timestamp_delta, pos = read_varint(view, pos + 1)
            delta, pos = read_varint(view, pos)
            if not previous_delta < delta <= last_delta:
                raise CorruptBatch(f"record {len(found)} has offset delta {delta}", batch.position)
            previous_delta = delta
            key_size, pos = read_varint(view, pos)
            key = None
            if key_size >= 0:
                key = view[pos : pos + key_size]
                pos += key_size
            value_size, pos = read_varint(view, pos)
            value = None
            if value_size >= 0:
                value = view[pos : pos + value_size]
                pos += value_size
            header_count, pos = read_varint(view, pos)
            if header_count != 0 or pos != record_end:
                pos = _skip_headers(view, pos, header_count, record_end)
                if pos != record_end:
                    raise CorruptBatch(
                        f"record {len(found)} claims {size} bytes and does not end there", batch.position
                    )
            found.append(RecordView(base_offset + delta, base_timestamp_ms + timestamp_delta, key, value))
    except IndexError:
        raise CorruptBatch(f"record {len(found)} runs past the end", batch.position) from None
    if pos != end:
        raise CorruptBatch(f"{end - pos} bytes are left behind the last record", batch.position)
    if found and found[-1].offset >= 1 << 63:
        raise CorruptBatch(f"its last record has offset {found[-1].offset}", batch.position)
    return found


def values(batch: Batch) -> list[memoryview]:
    """The values of a metadata batch in order of offset: the fast way of replay.

    The records' offsets are base_offset, base_offset + 1, ... Raises CorruptBatch where Kafka's reader of the
    metadata log fails too: for a key, a timestamp delta, a null or empty value, headers, and as
    `decompressed` does.
    """
    batch = decompressed(batch)
    header, view, _ = batch
    if C_ENGINE is not None and (quick := C_ENGINE.batch_values(view)) is not None:
        return quick
    raw = bytes(view)  # indexing bytes is quicker than indexing a view, by more than the copy costs
    end = len(raw)
    pos = HEADER_BYTES
    found: list[memoryview] = []
    append = found.append
    starts_with = raw.startswith
    try:
        for start in _record_starts(header.record_count):
            # Varints of one and of two bytes are read in place: they are nearly all that occur.
            size = raw[pos]
            if size < 0x80:
                pos += 1
            elif (second := raw[pos + 1]) < 0x80:
                size = size & 0x7F | second << 7
                pos += 2
            else:
                size, pos = _read_unsigned(view, pos)
            record_end = pos + (size >> 1)
            if size & 1 or not starts_with(start, pos):
                raise _odd_record(batch, len(found))
            pos += len(start)
            size = raw[pos]
            if size < 0x80:
                pos += 1
            elif (second := raw[pos + 1]) < 0x80:
                size = size & 0x7F | second << 7
                pos += 2
            else:
                size, pos = _read_unsigned(view, pos)
            stop = pos + (size >> 1)
            if size & 1 or size == 0 or stop + 1 != record_end or raw[stop]:
                raise _odd_record(batch, len(found))
            append(view[pos:stop])
            pos = record_end
    except IndexError:
        raise CorruptBatch(f"record {len(found)} runs past the end", batch.position) from None
    if pos != end:
        raise CorruptBatch(f"{end - pos} bytes are left behind the last record", batch.position)
    if len(found) != header.last_offset_delta + 1:
        raise CorruptBatch(f"{len(found)} records for {header.last_offset_delta + 1} offsets", batch.position)
    return found


def control_records(batch: Batch) -> list[ControlRecord]:
    """The decoded records of a control batch; those of unknown types have no message and are to be skipped.

    Each message begins with its own version; a newer one than is known here is read as the newest known.
    Raises CorruptBatch for keys that are none, ProtocolError for values that are none.
    """
    found = []
    for offset, _, key, value in records(batch):
        if key is None or len(key) < _CONTROL_KEY.size:
            raise CorruptBatch(f"control record {offset} has no key of 4 bytes", batch.position)
        key_version, record_type = _CONTROL_KEY.unpack_from(key)
        if key_version < 0:
            raise CorruptBatch(f"control record {offset} has key version {key_version}", batch.position)
        if value is None or len(value) < 2:
            raise CorruptBatch(f"control record {offset} has no value", batch.position)
        if not ControlRecordType.LEADER_CHANGE <= record_type <= ControlRecordType.KRAFT_VOTERS:
            found.append(ControlRecord(offset, record_type, None, None))
            continue
        cls = control_record_class(record_type)
        first, last = table_of(cls).valid
        version = max(first, min(last, int.from_bytes(value[:2], "big", signed=True)))
        found.append(ControlRecord(offset, record_type, decode(cls, version, value), version))
    return found


def _odd_record(batch: Batch, index: int) -> CorruptBatch:
    offset = batch.header.base_offset + index
    return CorruptBatch(f"the record of offset {offset} is not one of a metadata log", batch.position)


def _read_unsigned(view: memoryview, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most ten bytes (what a 64-bit number takes) and the position behind it."""
    value = shift = 0
    while True:
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
        if shift > 63:
            raise IndexError("overlong varint")


def read_varint(view: memoryview, pos: int) -> tuple[int, int]:
    """A zig-zag varint and the position after it."""
    byte = view[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value, pos = _read_unsigned(view, pos)
    return (value >> 1) ^ -(value & 1), pos


def _skip_headers(view: memoryview, pos: int, count: int, end: int) -> int:
    """The position after count record headers (a metadata log has none); -1 if they pass the end."""
    if not 0 <= count <= end - pos:
        return -1
    for _ in range(count):
        for _ in ("key", "value"):
            size, pos = read_varint(view, pos)
            pos += max(size, 0)
            if pos > end:
                return -1
    return pos
