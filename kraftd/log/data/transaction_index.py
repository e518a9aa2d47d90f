"""`.txnindex`: the aborted transactions whose last record is in a segment, in the order of their ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct

from kraftd.log.errors import CorruptStorage
from kraftd.named_tuple import NamedTuple

_ENTRY = Struct(">hqqqq")
_LAST_OFFSET = Struct(">18xq")
ENTRY_BYTES = _ENTRY.size
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """The records of a producer from first_offset to last_offset (that of its marker) are aborted.

    last_stable_offset is that of the log after the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(aborted: AbortedTransaction) -> bytes:
    """One entry of the file."""
    return _ENTRY.pack(_VERSION, *aborted)


def decode_aborted(data: bytes, path: str, base_offset: int) -> list[AbortedTransaction]:
    """The whole entries of a file; a torn one at its end is left out.

    Raises CorruptStorage for an unknown version, and for an entry that ends before base_offset.
    """
    return list(iter_aborted(data, path, base_offset, 0))


def iter_aborted(data: bytes, path: str, base_offset: int, first: int) -> Iterator[AbortedTransaction]:
    """The same, from an entry on. What is not taken is not looked at."""
    for at in range(first * ENTRY_BYTES, len(data) - len(data) % ENTRY_BYTES, ENTRY_BYTES):
        version, *fields = _ENTRY.unpack_from(data, at)
        entry = AbortedTransaction(*fields)
        # Kafka reads the version's first byte, which is 0 in all versions that it accepts.
        if version >> 8 > _VERSION:
            raise CorruptStorage(path, at, None, f"an entry of version {version}", _REMEDY)
        if entry.last_offset < base_offset:
            found_offset = f"a transaction that ends at {entry.last_offset}, before the segment"
            raise CorruptStorage(path, at, None, found_offset, _REMEDY)
        yield entry


def count_ended_before(data: bytes, offset: int) -> int:
    """How many entries of a file, from its begin on, end before an offset."""
    rows = range(len(data) // ENTRY_BYTES)
    return bisect_left(rows, offset, key=lambda row: _LAST_OFFSET.unpack_from(data, row * ENTRY_BYTES)[0])


_REMEDY = "Restart the broker, which makes the file anew"
