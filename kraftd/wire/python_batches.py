"""What `_records.c` does with whole batches, in Python: headers, checksums, and which an answer may have."""

from __future__ import annotations

from struct import Struct

from kraftd.wire.batch import BatchHeader
from kraftd.wire.crc32c import crc32c

Buffer = bytes | bytearray | memoryview
HeaderFields = tuple[int, ...]

HEADER_BYTES = 61
HEADER = Struct(">qiibIhiqqqhii")
LENGTH_END, MAGIC_AT, ATTRIBUTES_AT = 12, 16, 21
MAGIC = 2

_OFFSET = Struct(">q")


def batch_headers(
    data: Buffer, position: int, most: int, verify: bool
) -> tuple[list[BatchHeader], int, str | None]:
    """The headers of whole batches, the position after them, and why the next is none."""
    if not 0 <= position <= len(data):
        raise ValueError("the position is outside of the data")
    found: list[BatchHeader] = []
    while position < len(data) and len(found) < most:
        size, reason = _look_at_batch(data, position, verify)
        if reason is not None:
            return found, position, reason
        found.append(BatchHeader(*HEADER.unpack_from(data, position)))
        position += size
    return found, position, None


def _look_at_batch(data: Buffer, position: int, verify: bool) -> tuple[int, str | None]:
    """The size of the batch at a position, and why it is no whole one."""
    left, size = len(data) - position, 0
    if left >= LENGTH_END:
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + LENGTH_END
    if left > MAGIC_AT and data[position + MAGIC_AT] != MAGIC:
        return size, "format"
    if left >= LENGTH_END and size < HEADER_BYTES:
        return size, "length"
    if left < HEADER_BYTES or size > left:
        return size, "truncated"
    fields = HEADER.unpack_from(data, position)
    if min(fields[0], fields[6], fields[12]) < 0:
        return size, "offsets"
    if verify and crc32c(data[position + ATTRIBUTES_AT : position + size]) != fields[4]:
        return size, "checksum"
    return size, None


def verify_batches(data: Buffer, position: int, end_offset: int, leader_epoch: int) -> tuple[int, str | None]:
    """The position after batches of an epoch that begin below an offset, and why the next is none."""
    if not 0 <= position <= len(data):
        raise ValueError("the position is outside of the data")
    while position < len(data):
        if len(data) - position >= 8 and _OFFSET.unpack_from(data, position)[0] >= end_offset:
            break
        size, reason = _look_at_batch(data, position, True)
        if reason is None and leader_epoch >= 0 and HEADER.unpack_from(data, position)[2] != leader_epoch:
            reason = "leader epoch"
        if reason is not None:
            return position, reason
        position += size
    return position, None


def select_batches(
    data: Buffer, offset: int, max_bytes: int, end_offset: int, limit_offset: int
) -> tuple[int, int, int]:
    """Start and stop of the batches that an answer may have, and the bytes that are missing for one. With a
    stop of -1 the header at the start cannot follow the one before.
    """
    size = len(data)
    at, previous = 0, -1
    first, stop, limit = -1, 0, 0
    while at + HEADER_BYTES <= size:
        fields = HEADER.unpack_from(data, at)
        base_offset, length, last = fields[0], fields[1], fields[0] + fields[6]
        after = at + LENGTH_END + length
        if length < HEADER_BYTES - LENGTH_END or not previous < base_offset <= last < limit_offset:
            if first < 0:
                return at, -1, 0
            break  # what is before it is served
        previous = last
        if first < 0:
            if last >= offset:
                if last >= end_offset:
                    return at, at, 0
                if after > size:
                    return at, at, after - at
                first, stop, limit = at, after, at + max_bytes
        elif last >= end_offset or after > size or after > limit:
            break
        else:
            stop = after
        at = after
    return (first, stop, 0) if first >= 0 else (at, at, HEADER_BYTES)
