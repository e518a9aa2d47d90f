"""What `_records.c` does, in Python: for machines without a C compiler, and to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct

from kraftd.wire.batch import BatchHeader
from kraftd.wire.crc32c import crc32c as crc32c
from kraftd.wire.errors import DamagedRecords
from kraftd.wire.python_batches import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    Buffer,
    HeaderFields,
)
from kraftd.wire.python_batches import batch_headers as batch_headers
from kraftd.wire.python_batches import plain_answer as plain_answer
from kraftd.wire.python_batches import select_batches as select_batches
from kraftd.wire.python_batches import verify_batches as verify_batches

# Timestamp, key, value, headers.
NewRecord = tuple[int, "bytes | None", "bytes | None", "Sequence[tuple[bytes, bytes | None]]"]
Fields = tuple[int, int, int, "bytes | None", "bytes | None", list[tuple["bytes | None", "bytes | None"]]]

MOST_ERRORS = 10_000

_CRC_AT = 17
_LEAST_LENGTH, _LEAST_RECORD_BYTES = 14, 7
_CODEC, _APPEND_TIME, _CONTROL, _KNOWN, _LAST_CODEC, _ZSTD = 7, 8, 32, 0x7F, 4, 4
_CLIENT, _COMPACTED, _SET_APPEND_TIME, _NO_ZSTD, _LENIENT, _KEEP = 1, 2, 4, 8, 16, 32
(
    _VALID, _NO_BATCH, _BAD_LENGTH, _BAD_MAGIC, _OLD_MAGIC, _ZSTD_TOO_EARLY, _MORE_BATCHES, _BASE_OFFSET,
    _TOO_LARGE, _TOO_SHORT, _BAD_CRC, _UNKNOWN_CODEC, _NEEDS_BODY, _OFFSET_RANGE, _RECORD_COUNT,
    _COUNT_DIFFERS, _CONTROL_BATCH, _SEQUENCE, _RECORDS, _STRUCTURE, _OFFSETS_DIFFER,
) = range(21)  # fmt: skip
_SLOT, _HASH_BYTES = Struct("<16sQ"), 16
_NO_KEY, _OUT_OF_RANGE, _APPEND_TIME_SET = 1, 2, 3


class _Damaged(Exception):
    """A record that cannot be read."""


def _wrapped(number: int) -> int:
    """A number as Java's long has it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _varint(data: Buffer, at: int, end: int, most_bytes: int) -> tuple[int, int]:
    """A zig-zag varint of at most that many bytes, and the position after it."""
    value = 0
    for index in range(most_bytes):
        if at >= end:
            raise _Damaged
        byte = data[at]
        at += 1
        value |= (byte & 127) << 7 * index
        if byte < 128:
            value &= (1 << (32 if most_bytes == 5 else 64)) - 1
            return (value >> 1) ^ -(value & 1), at
    raise _Damaged


def _field(data: Buffer, at: int, end: int) -> tuple[int, bytes | None, int]:
    """A length, that many bytes (None if it is negative) and the position after them."""
    size, at = _varint(data, at, end, 5)
    if size > end - at:
        raise _Damaged
    if size < 0:
        return size, None, at
    return size, bytes(data[at : at + size]), at + size


class _Record:
    """A record that was read; `after` is the position after it."""

    __slots__ = (
        "after",
        "headers",
        "key",
        "key_bytes",
        "offset_delta",
        "timestamp_delta",
        "value",
        "value_bytes",
    )

    def __init__(self, data: Buffer, at: int, end: int, lenient: bool) -> None:
        size, at = _varint(data, at, end, 5)
        if not lenient:
            if not 0 <= size <= end - at:
                raise _Damaged
            end = at + size
        if at >= end:
            raise _Damaged
        self.timestamp_delta, at = _varint(data, at + 1, end, 10)
        self.offset_delta, at = _varint(data, at, end, 5)
        self.key_bytes, self.key, at = _field(data, at, end)
        self.value_bytes, self.value, at = _field(data, at, end)
        count, at = _varint(data, at, end, 5)
        if not 0 <= count <= end - at:
            raise _Damaged
        self.headers: list[tuple[bytes | None, bytes | None]] = []
        for _ in range(count):
            key_bytes, key, at = _field(data, at, end)
            if key_bytes < 0:
                raise _Damaged
            _, value, at = _field(data, at, end)
            self.headers.append((key, value))
        if not lenient and at != end:
            raise _Damaged
        self.after = at


def _next_size(data: Buffer, at: int) -> tuple[int, tuple[int, int, int]]:
    """The size of the batch at a position, 0 if none is there; else an outcome."""
    left = len(data) - at
    if left < LENGTH_END:
        return 0, (_VALID, 0, 0)
    length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
    if length < _LEAST_LENGTH:
        return -1, (_BAD_LENGTH, length, 0)
    if left <= MAGIC_AT:
        return 0, (_VALID, 0, 0)
    magic = data[at + MAGIC_AT]
    if magic > MAGIC:
        return -1, (_BAD_MAGIC, magic - 256 if magic > 127 else magic, 0)
    return (length + LENGTH_END if length + LENGTH_END <= left else 0), (_VALID, 0, 0)


def _judge_batch(data: Buffer, most_bytes: int, options: int) -> tuple[int, int, int]:
    """Judge the only batch of some bytes up to its records."""
    own, outcome = _next_size(data, 0)
    if own <= 0:
        return outcome if own else (_NO_BATCH, 0, 0)
    if data[MAGIC_AT] != MAGIC:
        return _OLD_MAGIC, data[MAGIC_AT], 0
    codec = data[ATTRIBUTES_AT + 1] & _CODEC
    if options & _NO_ZSTD and codec >= _ZSTD:
        return (_UNKNOWN_CODEC, codec, 0) if codec > _LAST_CODEC else (_ZSTD_TOO_EARLY, 0, 0)
    following, outcome = _next_size(data, own)
    if following:
        return (_MORE_BATCHES, 0, 0) if following > 0 else outcome
    base = int.from_bytes(data[:8], "big", signed=True)
    if options & _CLIENT and base != 0:
        return _BASE_OFFSET, base, 0
    if own > most_bytes:
        return _TOO_LARGE, own, 0
    if own < HEADER_BYTES:
        return _TOO_SHORT, own, 0
    fields = HEADER.unpack_from(data)
    stored, computed = fields[4], crc32c(data[ATTRIBUTES_AT:own])
    if stored != computed:
        return _BAD_CRC, stored, computed
    if codec > _LAST_CODEC:
        return _UNKNOWN_CODEC, codec, 0
    delta, count, producer_id, sequence = fields[6], fields[12], fields[9], fields[11]
    if options & _CLIENT:
        if delta < 0:
            return _OFFSET_RANGE, delta, 0
        if count <= 0:
            return _RECORD_COUNT, count, 0
        if delta + 1 != count:
            return _COUNT_DIFFERS, delta, count
        if fields[5] & _CONTROL:
            return _CONTROL_BATCH, 0, 0
        if producer_id > -1 and sequence < 0:
            return _SEQUENCE, sequence, producer_id
    return _VALID, 0, 0


def judge(
    data: Buffer,
    body: Buffer | None,
    now_ms: int,
    base_offset: int,
    leader_epoch: int,
    most_bytes: int,
    before_ms: int,
    after_ms: int,
    target: int,
    options: int,
) -> tuple[object, ...]:
    """As `judge` of `_records.c`; `kraftd.wire.records.RecordEngine` says what it takes and returns."""
    if body is None:
        outcome = _judge_batch(data, most_bytes, options)
        if outcome[0]:
            return outcome
        attributes = data[ATTRIBUTES_AT + 1]
        if attributes & _CODEC or (target > 0 and not attributes & _CONTROL):
            return _NEEDS_BODY, attributes & _CODEC, 0
    size = int.from_bytes(data[8:12], "big", signed=True) + LENGTH_END if len(data) >= HEADER_BYTES else 0
    if not HEADER_BYTES <= size <= len(data):
        return _TOO_SHORT, 0, 0
    records, at = (data[:size], HEADER_BYTES) if body is None else (body, 0)
    fields = HEADER.unpack_from(data)
    attributes, count, append_time = fields[5], fields[12], fields[5] & _APPEND_TIME
    faults: list[tuple[int, ...]] = []
    most, differ, index = -1, False, 0
    try:
        if count < 0:
            raise _Damaged
        for index in range(count):
            record = _Record(records, at, len(records), bool(options & _LENIENT))
            at = record.after
            offset = _wrapped(fields[0] + record.offset_delta)
            timestamp = fields[8] if append_time else _wrapped(fields[7] + record.timestamp_delta)
            kind = 0
            if options & _COMPACTED and record.key_bytes < 0:
                kind = _NO_KEY
            elif not options & _SET_APPEND_TIME and timestamp != -1:
                difference = _wrapped(now_ms - timestamp)
                if difference > before_ms or _wrapped(-difference) > after_ms:
                    kind = _OUT_OF_RANGE
            elif append_time:
                kind = _APPEND_TIME_SET
            if kind:
                faults.append((index, kind, offset, timestamp, record.key_bytes, record.value_bytes))
                continue
            most = max(most, timestamp)
            differ |= offset != index
        if count and at != len(records):
            raise _Damaged
    except _Damaged:
        return _STRUCTURE, index, 0
    if faults:
        return _RECORDS, faults[:MOST_ERRORS], len(faults)
    if (attributes & _CODEC or target > 0) and differ and not options & _KEEP:
        return _OFFSETS_DIFFER, count - 1, 0
    if not options & _KEEP:
        _patch(
            data,
            size,
            fields,
            now_ms if options & _SET_APPEND_TIME else most,
            base_offset,
            leader_epoch,
            options,
        )
    return _VALID, BatchHeader(*HEADER.unpack_from(data))


def _patch(
    data: Buffer,
    size: int,
    fields: HeaderFields,
    most: int,
    base_offset: int,
    leader_epoch: int,
    options: int,
) -> None:
    """Give a batch its offsets, leader epoch and timestamps, and a new checksum if a timestamp changed."""
    assert not isinstance(data, bytes)
    base = _wrapped(base_offset + fields[12] - 1 - fields[6])
    data[0:8] = base.to_bytes(8, "big", signed=True)
    data[12:16] = leader_epoch.to_bytes(4, "big", signed=True)
    wanted = _APPEND_TIME if options & _SET_APPEND_TIME else 0
    if fields[5] & _APPEND_TIME == wanted and fields[8] == most:
        return
    data[ATTRIBUTES_AT] = 0
    data[ATTRIBUTES_AT + 1] = data[ATTRIBUTES_AT + 1] & _KNOWN & ~_APPEND_TIME | wanted
    data[35:43] = most.to_bytes(8, "big", signed=True)
    data[_CRC_AT : _CRC_AT + 4] = crc32c(data[ATTRIBUTES_AT:size]).to_bytes(4, "big")


def _opened(data: Buffer) -> HeaderFields:
    """The header of one uncompressed batch. Raises DamagedRecords."""
    if len(data) >= HEADER_BYTES:
        fields = HEADER.unpack_from(data)
        most = (len(data) - HEADER_BYTES) // _LEAST_RECORD_BYTES
        if 0 <= fields[12] <= most and not fields[5] & _CODEC:
            return fields
    raise DamagedRecords("not one uncompressed batch")


def _read(data: Buffer, at: int, index: int, lenient: bool = False) -> _Record:
    try:
        return _Record(data, at, len(data), lenient)
    except _Damaged:
        raise DamagedRecords(f"record {index} is damaged") from None


def find_timestamp(data: Buffer, target_ms: int, start_offset: int, exact: bool) -> tuple[int, int] | None:
    """The first record of at least that timestamp, or exactly it: (offset, timestamp)."""
    fields = _opened(data)
    at = HEADER_BYTES
    for index in range(fields[12]):
        record = _read(data, at, index, lenient=True)
        at = record.after
        offset = _wrapped(fields[0] + record.offset_delta)
        timestamp = fields[8] if fields[5] & _APPEND_TIME else _wrapped(fields[7] + record.timestamp_delta)
        if offset >= start_offset and (timestamp == target_ms if exact else timestamp >= target_ms):
            return offset, timestamp
    return None


def decode_records(data: Buffer) -> list[tuple[object, ...]]:
    """[(offset, timestamp, key, value, headers)] of an uncompressed batch."""
    fields = _opened(data)
    found: list[tuple[object, ...]] = []
    at = HEADER_BYTES
    for index in range(fields[12]):
        record = _read(data, at, index)
        at = record.after
        timestamp = fields[8] if fields[5] & _APPEND_TIME else _wrapped(fields[7] + record.timestamp_delta)
        offset = _wrapped(fields[0] + record.offset_delta)
        found.append((offset, timestamp, record.key, record.value, tuple(record.headers)))
    if at != len(data):
        raise DamagedRecords(f"record {fields[12] - 1} is followed by more bytes")
    return found


def _new_varint(value: int) -> bytes:
    value = value << 1 ^ (-1 if value < 0 else 0)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


KEPT_VARINTS = 2_048  # nearly all lengths and deltas of the records that coordinators write


class _Varints(dict[int, bytes]):
    """Numbers as varints. Small ones are kept once they were needed."""

    def __missing__(self, value: int) -> bytes:
        made = _new_varint(value)
        if -1 <= value < KEPT_VARINTS:
            self[value] = made
        return made


VARINTS = _Varints()


def _put_field(value: bytes | None) -> bytes:
    return VARINTS[-1] if value is None else VARINTS[len(value)] + value


def write_records(records: Sequence[NewRecord], /) -> tuple[bytes, int, int]:
    """Records as a batch holds them, with the first timestamp and the maximum."""
    out = bytearray()
    first = most = records[0][0] if records else 0
    for index, (timestamp_ms, key, value, headers) in enumerate(records):
        most = max(most, timestamp_ms)
        out += _written(_wrapped(timestamp_ms - first), index, key, value, headers)
    return bytes(out), first, most


def _written(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[bytes | None, bytes | None]],
) -> bytes:
    """One record."""
    parts = [b"\x00", VARINTS[timestamp_delta], VARINTS[offset_delta]]
    parts += (_put_field(key), _put_field(value), VARINTS[len(headers)])
    for name, content in headers:
        parts += (_put_field(name), _put_field(content))
    body = b"".join(parts)
    return VARINTS[len(body)] + body


def rewrite(data: Buffer) -> tuple[bytes, int, int] | None:
    """The records of an uncompressed batch, written anew, with base and maximum timestamp."""
    return _written_anew(data, None, -1, renumbers=True)


def keep_records(data: Buffer, kept: bytes, base_timestamp: int) -> tuple[bytes, int, int] | None:
    """The records with a mark, written anew at their offsets, with base and maximum timestamp."""
    return _written_anew(data, kept, base_timestamp, renumbers=False)


def _written_anew(
    data: Buffer, kept: bytes | None, base_timestamp: int, *, renumbers: bool
) -> tuple[bytes, int, int] | None:
    fields = _opened(data)
    if kept is not None and len(kept) != fields[12]:
        raise ValueError("a mark for each record is needed")
    out = bytearray()
    at, first, most, count = HEADER_BYTES, base_timestamp, -1, 0
    for index in range(fields[12]):
        record = _read(data, at, index)
        at = record.after
        if kept is not None and not kept[index]:
            continue
        timestamp = fields[8] if fields[5] & _APPEND_TIME else _wrapped(fields[7] + record.timestamp_delta)
        if timestamp < -1:
            return None
        first = timestamp if not count and first == -1 else first
        most = max(most, timestamp)
        delta = count if renumbers else record.offset_delta
        count += 1
        out += _written(_wrapped(timestamp - first), delta, record.key, record.value, record.headers)
    return bytes(out), first, most


# --- the newest offset of each key: slots of a key's hash and an offset plus one, 0 where one is free ---


def _slot_of(slots: bytearray, secret: bytes, key: bytes) -> tuple[int, bytes, int]:
    """Where the slot of a key is, its hash, and what it has noted; -1 if every slot has another key."""
    if len(secret) != _HASH_BYTES:
        raise ValueError("a secret of 16 bytes is needed")
    hashed = blake2b(key, digest_size=_HASH_BYTES, key=secret).digest()
    count = len(slots) // _SLOT.size
    first = int.from_bytes(hashed[:8], "little") % count if count else 0
    for number in range(count):
        at = (first + number) % count * _SLOT.size
        other, noted = _SLOT.unpack_from(slots, at)
        if not noted or other == hashed:
            return at, hashed, noted
    return -1, hashed, 0


def _offset_of(fields: HeaderFields, record: _Record, index: int) -> int:
    offset = _wrapped(fields[0] + record.offset_delta)
    if offset < 0:
        raise DamagedRecords(f"record {index} is damaged")
    return offset


def note_keys(
    slots: bytearray, secret: bytes, data: Buffer, start_offset: int, room: int
) -> tuple[int, int, bool]:
    """Note the offset of each record with a key; how many are new, the last offset, if all fitted."""
    fields = _opened(data)
    at, added, last = HEADER_BYTES, 0, -1
    for index in range(fields[12]):
        record = _read(data, at, index)
        at = record.after
        offset = _offset_of(fields, record, index)
        if record.key is None or offset < start_offset:
            continue
        slot, hashed, noted = _slot_of(slots, secret, record.key) if added < room else (-1, b"", 0)
        if slot < 0:
            return added, last, False
        added += not noted
        _SLOT.pack_into(slots, slot, hashed, offset + 1)
        last = offset
    return added, last, True


def newest_records(
    slots: bytearray, secret: bytes, data: Buffer, latest_offset: int, drops_tombstones: bool
) -> tuple[bytes, int, bool]:
    """A mark for each record, how many stay, and whether a tombstone does."""
    fields = _opened(data)
    at, marks, has_tombstones = HEADER_BYTES, bytearray(), False
    for index in range(fields[12]):
        record = _read(data, at, index)
        at = record.after
        offset = _offset_of(fields, record, index)
        stays = offset > latest_offset
        if not stays and record.key is not None:
            noted = _slot_of(slots, secret, record.key)[2]
            stays = offset + 1 >= noted and (record.value is not None or not drops_tombstones)
        marks.append(stays)
        has_tombstones |= stays and record.value is None
    return bytes(marks), sum(marks), has_tombstones


def room(size_bytes: int, /) -> bytearray:
    return bytearray(size_bytes)
