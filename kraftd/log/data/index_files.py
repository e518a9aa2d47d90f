"""Binary search in `.index` and `.timeindex` files, whose entries need not be in memory.

Kafka maps ten MiB of zeros while it writes an index. Such a file is rebuilt before it is used: only an
unclean stop leaves one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from kraftd.log.disk import File

OFFSET_ENTRY = Struct(">II")  # relative offset of a batch's last record, position
TIME_ENTRY = Struct(">qI")  # largest timestamp so far, relative offset
_BLOCK_ENTRIES = 2048  # read at once when the search has come so far: a call costs as much as these bytes


def offset_entry(file: File, at: int) -> tuple[int, int]:
    """(relative offset, position) of the entry of that number, which exists."""
    relative, position = OFFSET_ENTRY.unpack(file.read(at * OFFSET_ENTRY.size, OFFSET_ENTRY.size))
    return relative, position


def time_entry(file: File, at: int) -> tuple[int, int]:
    """(timestamp, relative offset) of the entry of that number, which exists."""
    timestamp_ms, relative = TIME_ENTRY.unpack(file.read(at * TIME_ENTRY.size, TIME_ENTRY.size))
    return timestamp_ms, relative


def count_of_offsets_to(file: File, count: int, relative: int) -> int:
    """How many of the first count entries have at most this relative offset."""
    return _count(file, OFFSET_ENTRY, count, lambda entry: bool(entry[0] <= relative))


def count_of_times_before(file: File, count: int, timestamp_ms: int) -> int:
    """How many of the first count entries are older than timestamp_ms."""
    return _count(file, TIME_ENTRY, count, lambda entry: bool(entry[0] < timestamp_ms))


def count_of_time_offsets_before(file: File, count: int, relative: int) -> int:
    """How many of the first count entries of times have a lower relative offset."""
    return _count(file, TIME_ENTRY, count, lambda entry: bool(entry[1] < relative))


def _count(file: File, entry: Struct, count: int, holds: Callable[[tuple[int, int]], bool]) -> int:
    """How many entries at the beginning hold: all that hold come first."""
    low, high = 0, count
    size = entry.size
    while high - low > _BLOCK_ENTRIES:
        middle = (low + high) // 2
        if holds(entry.unpack(file.read(middle * size, size))):
            low = middle + 1
        else:
            high = middle
    block = file.read(low * size, (high - low) * size)
    first, last = 0, len(block) // size
    while first < last:
        middle = (first + last) // 2
        if holds(entry.unpack_from(block, middle * size)):
            first = middle + 1
        else:
            last = middle
    return low + first
