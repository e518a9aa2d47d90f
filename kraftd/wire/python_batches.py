"""What `_records.c` does with whole batches, in Python: headers, checksums, and which an answer may have."""

from __future__ import annotations

from struct import Struct
from typing import Any

from kraftd.wire.batch import BatchHeader
from kraftd.wire.crc32c import crc32c

Buffer = bytes | bytearray | memoryview
HeaderFields = tuple[int, ...]

HEADER_BYTES = 61
HEADER = Struct(">qiibIhiqqqhii")
LENGTH_END, MAGIC_AT, ATTRIBUTES_AT = 12, 16, 21
MAGIC = 2

_OFFSET = Struct(">q")
# Of an answer to a fetch: correlation id, tags, throttle time, error and session; a partition up to its
# aborted transactions.
_ANSWER_HEAD, _UUID, _PARTITION, _PREFERRED, _BYTE = map(Struct, (">iBihi", "16s", ">ihqqq", ">i", "B"))
_NOT_PLAIN = 0x10 | 0x20  # of attributes: of a transaction, control
MAX_OFFSET = (1 << 63) - 1

# Topic id and index, high watermark, log start, and records with their headers, if there are any.
PlainRow = tuple[tuple[bytes, int], int, int, memoryview | None, list[BatchHeader] | None]


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


def plain_answer(frame: memoryview, session_id: int) -> list[PlainRow] | None:
    """The partitions of an answer to a fetch, v13 or later, of a session; None if there is more in it."""
    answer = _Answer(frame)
    try:
        head = answer.take(_ANSWER_HEAD)
        if head[1] or head[3] or head[4] != session_id:
            return None
        rows = [row for _ in range(answer.length() - 1) for row in answer.topic()]
        answer.no_tags()
    except _NotPlain:
        return None
    return rows if answer.at == len(frame) else None


class _NotPlain(Exception):
    """An answer that has more than records."""


class _Answer:
    """An answer that is read from its begin on."""

    def __init__(self, frame: memoryview) -> None:
        self.frame, self.at = frame, 0

    def __repr__(self) -> str:
        return f"<_Answer at {self.at} of {len(self.frame)}>"

    def take(self, fields: Struct) -> tuple[Any, ...]:
        at, self.at = self.at, self.at + fields.size
        if self.at > len(self.frame):
            raise _NotPlain
        return fields.unpack_from(self.frame, at)

    def length(self) -> int:
        """A length in the compact encoding, with one added."""
        value = 0
        for shift in range(0, 35, 7):
            byte = int(self.take(_BYTE)[0])
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _NotPlain

    def no_tags(self) -> None:
        if self.take(_BYTE)[0]:
            raise _NotPlain

    def topic(self) -> list[PlainRow]:
        (topic_id,) = self.take(_UUID)
        rows = [self._partition(topic_id) for _ in range(self.length() - 1)]
        self.no_tags()
        return rows

    def _partition(self, topic_id: bytes) -> PlainRow:
        index, error, high_watermark, _, log_start = self.take(_PARTITION)
        if error or self.length() > 1:
            raise _NotPlain
        self.take(_PREFERRED)
        size = max(0, self.length() - 1)
        at, self.at = self.at, self.at + size
        self.no_tags()
        records = self.frame[at : at + size] if size else None
        headers = None if records is None else _plain_headers(records)
        return (topic_id, index), high_watermark, log_start, records, headers


def _plain_headers(records: memoryview) -> list[BatchHeader]:
    """The headers of batches of one epoch that follow each other, and are data without a transaction."""
    headers, end, _ = batch_headers(records, 0, len(records), True)
    if end < len(records):
        raise _NotPlain
    for before, header in zip([None, *headers], headers, strict=False):
        follows = before is None or (header.base_offset, header.leader_epoch) == (
            before.next_offset,
            before.leader_epoch,
        )
        if not follows or header.attributes & _NOT_PLAIN or header.last_offset >= MAX_OFFSET:
            raise _NotPlain
    return headers


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
) -> tuple[int, int, int, int]:
    """Start and stop of the batches that an answer may have, the bytes that are missing for one, and the
    offset after them. With a stop of -1 the header at the start cannot follow the one before.
    """
    size = len(data)
    at, previous = 0, -1
    first, stop, limit, next_offset = -1, 0, 0, 0
    while at + HEADER_BYTES <= size:
        fields = HEADER.unpack_from(data, at)
        base_offset, length, last = fields[0], fields[1], fields[0] + fields[6]
        after = at + LENGTH_END + length
        if length < HEADER_BYTES - LENGTH_END or not previous < base_offset <= last < limit_offset:
            if first < 0:
                return at, -1, 0, 0
            break  # what is before it is served
        previous = last
        if first < 0:
            if last >= offset:
                if last >= end_offset:
                    return at, at, 0, 0
                if after > size:
                    return at, at, after - at, 0
                first, stop, limit, next_offset = at, after, at + max_bytes, last + 1
        elif last >= end_offset or after > size or after > limit:
            break
        else:
            stop, next_offset = after, last + 1
        at = after
    return (first, stop, 0, next_offset) if first >= 0 else (at, at, HEADER_BYTES, 0)
