"""Splits a log into byte ranges that begin and end with a batch, without reading its records.

A segment's sparse index has positions of batches, which are used if a plausible header is there; otherwise
headers are walked. The end of a segment is always walked, because it determines the end of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftd.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentIndex,
    find_valid_batch,
)
from kraftd.spark.errors import damaged
from kraftd.spark.inputs.layout import SegmentFile
from kraftd.spark.inputs.storage import StoredFile, read_bytes, stored_at
from kraftd.wire.batch import HEADER_BYTES, BatchHeader, CorruptBatch, parse_header

SPLIT_BYTES = 16 << 20
MAX_SPLITS = 4096
"""How many splits a log has at most, beside one more a segment: the driver holds them all."""
Place = tuple[int, BatchHeader]
"""The position of a batch in its file, and its header."""


@dataclass(frozen=True)
class Split:
    """Bytes start to end of a file: whole batches of offsets from first_offset to below next_offset.

    In mode PERMISSIVE a torn tail is a split, too: without offsets, next_offset being first_offset. stored_at
    is where a worker finds the file, if that is not its path.
    """

    path: str
    start: int
    end: int
    first_offset: int
    next_offset: int
    stored_at: str | None = None


@dataclass(frozen=True)
class TornTail:
    """Bytes at the end of a file that are no whole batch: from a crash, or from a write in progress."""

    path: str
    position: int
    size_bytes: int
    offset: int

    def __str__(self) -> str:
        return (
            f"{self.path}: byte {self.position}, offset {self.offset}: a torn tail of {self.size_bytes} "
            "bytes is not read; a crash leaves one, and so does a writer at work"
        )


@dataclass(frozen=True)
class SegmentPlan:
    """The splits of one segment, where it ends, and the epoch of its last batch (None when it is empty)."""

    segment: SegmentFile
    splits: tuple[Split, ...]
    end_offset: int
    last_epoch: int | None
    torn: TornTail | None


def split_bytes_of(log_bytes: int) -> int:
    """The bytes a split for a log of some length."""
    return max(SPLIT_BYTES, -(-log_bytes // MAX_SPLITS))


def plan_segment(
    segment: SegmentFile, split_bytes: int = SPLIT_BYTES, *, permissive: bool = False
) -> SegmentPlan:
    """Split a segment. Raises InputError for damage that the walk meets, unless permissive."""
    file = StoredFile(segment.path)
    try:
        return _plan(file, segment, split_bytes, permissive)
    finally:
        file.close()


def _plan(file: StoredFile, segment: SegmentFile, split_bytes: int, permissive: bool) -> SegmentPlan:
    size = file.size_bytes()
    starts = [(0, segment.base_offset)]
    end, end_offset, last_epoch, torn = 0, segment.base_offset, None, None
    places = _sparse_places(file, segment, size, split_bytes)
    while True:
        for position, header in places:
            if position - starts[-1][0] >= split_bytes:
                starts.append((position, header.base_offset))
            end, end_offset = position + header.size_bytes, header.next_offset
            last_epoch = header.leader_epoch
        if end == size:
            break
        following = find_valid_batch(file, end + 1, size, end_offset)
        if following is None:
            torn = TornTail(segment.path, end, size - end, end_offset)
            break
        if not permissive:
            reason = f"no valid batch; readable again at byte {following}"
            raise damaged(segment.path, end, reason, end_offset)
        places = walk_headers(file, following, size)
    stops = [*starts[1:], (end, end_offset)]
    place = stored_at(segment.path)
    splits = [
        Split(segment.path, start, stop, first, following, place)
        for (start, first), (stop, following) in zip(starts, stops, strict=True)
        if stop > start
    ]
    if permissive and torn is not None:
        splits.append(Split(segment.path, end, size, end_offset, end_offset, place))
    return SegmentPlan(segment, tuple(splits), end_offset, last_epoch, torn)


def _sparse_places(file: StoredFile, segment: SegmentFile, size: int, split_bytes: int) -> Iterator[Place]:
    """Positions of some batches, about every split_bytes, and of all after the last index entry."""
    position = 0
    index = _load_index(segment, size)
    for place in [] if index is None else _indexed_places(file, index, size, split_bytes):
        yield place
        position = place[0] + place[1].size_bytes
    yield from walk_headers(file, position, size)


def _indexed_places(file: StoredFile, index: SegmentIndex, size: int, split_bytes: int) -> Iterator[Place]:
    last = index.last_entry
    at, offset = 0, index.base_offset
    while last is not None:
        header = header_at(file, at, size)
        if header is None or header.base_offset < offset:
            return
        yield at, header
        if at >= last[1]:
            return
        offset = header.next_offset
        following = index.position_below(at, at + split_bytes)
        at = following if following > at else last[1]


def _load_index(segment: SegmentFile, size: int) -> SegmentIndex | None:
    stem = segment.path.removesuffix(LOG_SUFFIX)
    offsets = read_bytes(stem + OFFSET_INDEX_SUFFIX)
    if not offsets:
        return None
    times = read_bytes(stem + TIME_INDEX_SUFFIX) or b""
    return SegmentIndex.load(segment.base_offset, offsets, times, size)


def walk_headers(file: StoredFile, position: int, size: int) -> Iterator[Place]:
    """The batches from position on; ends before bytes that are no whole batch."""
    while position < size:
        header = header_at(file, position, size)
        if header is None:
            return
        yield position, header
        position += header.size_bytes


def header_at(file: StoredFile, position: int, size: int) -> BatchHeader | None:
    """The header at a position; None if there is no whole batch."""
    try:
        header = parse_header(file.read(position, HEADER_BYTES), alone=True)
    except CorruptBatch:
        return None
    return header if position + header.size_bytes <= size else None
