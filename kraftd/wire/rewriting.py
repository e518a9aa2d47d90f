"""Batches with other values in some of their records. All else is kept: offsets, timestamps, epoch, count."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kraftd.wire.batch import HEADER_BYTES, Batch, CorruptBatch, read_varint, signed_varint
from kraftd.wire.crc32c import crc32c

_BEFORE_CRC = Struct(">qiibI")
_LENGTH_END = 12
_CRC_END = 21


# Where in its batch a record starts, its body, its value's length, its value; where value and record end.
RecordPlace = tuple[int, int, int, int, int, int]


def place_at(view: memoryview, start: int) -> RecordPlace:
    """The place of the record that starts at a position. Raises CorruptBatch."""
    try:
        size, body = read_varint(view, start)
        end = body + size
        _, at = read_varint(view, body + 1)  # the timestamp's delta
        _, at = read_varint(view, at)  # the offset's
        key_bytes, at = read_varint(view, at)
        key_end = at + max(key_bytes, 0)
        value_bytes, value = read_varint(view, key_end)
    except IndexError:
        raise CorruptBatch("a record runs past the end", start) from None
    value_end = value + max(value_bytes, 0)
    if not body < key_end < value <= value_end < end <= len(view):
        raise CorruptBatch(f"a record of {size} bytes does not end there", start)
    return start, body, key_end, value, value_end, end


def places_of(batch: Batch) -> Iterator[RecordPlace]:
    """The places of all records of an uncompressed batch. Raises CorruptBatch."""
    at = HEADER_BYTES
    for _ in range(batch.header.record_count):
        place = place_at(batch.view, at)
        yield place
        at = place[-1]
    if at != len(batch.view):
        raise CorruptBatch(f"{len(batch.view) - at} bytes are left after the last record", batch.position)


class Rewriting:
    """An uncompressed batch in which values are replaced, in the order of their records."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._covered = bytearray()  # by the checksum
        self._kept = _CRC_END  # up to here the batch's bytes are there

    def replace(self, place: RecordPlace, value: bytes) -> None:
        """Give a record another value."""
        start, body, length_at, _, value_end, end = place
        view, covered = self._batch.view, self._covered
        value_bytes = signed_varint(len(value))
        covered += view[self._kept : start]
        covered += signed_varint(length_at - body + len(value_bytes) + len(value) + end - value_end)
        covered += view[body:length_at]
        covered += value_bytes
        covered += value
        covered += view[value_end:end]
        self._kept = end

    def finish(self) -> bytes | None:
        """The batch with its new checksum; None if nothing was replaced."""
        covered, header = self._covered, self._batch.header
        if not covered:
            return None
        covered += self._batch.view[self._kept :]
        length = len(covered) + _CRC_END - _LENGTH_END
        start = _BEFORE_CRC.pack(
            header.base_offset, length, header.leader_epoch, header.magic, crc32c(covered)
        )
        return start + covered
