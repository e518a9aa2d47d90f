"""Offsets by time in an ordinary partition's log, for ListOffsets, as Kafka finds them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import REMEDY
from kraftd.log.data.segment import DataSegment
from kraftd.log.errors import CorruptStorage
from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches
from kraftd.wire.records import first_of_timestamp

_READ_BYTES = 64 << 10


class FoundRecord(NamedTuple):
    """A record's timestamp and offset, and its batch's leader epoch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: DataLog, timestamp_ms: int) -> FoundRecord | None:
    """The first record with at least that timestamp, in the first segment that may hold one; None without.

    The caller compares it with the high watermark or the last stable offset. Reads an index interval and a
    batch. Raises CorruptStorage, StorageError.
    """
    directory = log.directory
    for segment, behind in pairwise([*log.segments, None]):
        assert segment is not None
        if behind is not None and behind.base_offset <= log.log_start:
            continue
        if log.largest_timestamp_ms(segment) < timestamp_ms:
            continue
        start = max(segment.offset_before(timestamp_ms, directory, log.opened), log.log_start)
        for batch in _batches(log, segment, start):
            if batch.header.max_timestamp_ms < timestamp_ms:
                continue
            found = _first(log, segment, batch, timestamp_ms, log.log_start)
            if found is not None:
                return FoundRecord(found[1], found[0], batch.header.leader_epoch)
        return None
    return None


def max_timestamp(log: DataLog) -> FoundRecord | None:
    """The first record with the largest timestamp of all, also if none has one; None without records.

    As in Kafka, also None if a cleaning has removed the records of the batch that has it, and kept the batch.
    The record may be below the log start, while its segment is there: Kafka looks no further, either.

    Raises CorruptStorage, StorageError.
    """
    directory = log.directory
    newest, largest = log.segments[0], (-1, -1)
    for segment in log.segments:
        found = segment.max_time(directory, log.opened)
        if found[0] > largest[0]:
            newest, largest = segment, found
    for batch in _batches(log, newest, largest[1]):
        if batch.header.max_timestamp_ms == largest[0]:
            first = _first(log, newest, batch, largest[0], 0, exact=True)
            return None if first is None else FoundRecord(first[1], first[0], batch.header.leader_epoch)
    return None


def _batches(log: DataLog, segment: DataSegment, start: int) -> Iterator[Batch]:
    """The batches of a segment from the one that holds start on."""
    at = [each.base_offset for each in log.segments].index(segment.base_offset)
    end = log.segments[at + 1].base_offset if at + 1 < len(log.segments) else log.log_end
    start = max(start, segment.base_offset)
    while start < end and (data := _read(log, start, end)):
        for batch in iter_batches(data, verify=False):
            yield batch
            start = batch.header.next_offset


def _read(log: DataLog, start: int, end: int) -> bytes | memoryview | None:
    """Some batches, also of below the log start while their segment is there."""
    if start >= log.log_start:
        return log.read(start, _READ_BYTES, end)
    return log.cold_read(start, _READ_BYTES, end).read(log.opened, cached_only=False)


def _first(
    log: DataLog, segment: DataSegment, batch: Batch, timestamp_ms: int, start: int, *, exact: bool = False
) -> tuple[int, int] | None:
    """Offset and timestamp of a batch's first record from start on, of at least or exactly that timestamp."""
    try:
        return first_of_timestamp(batch, timestamp_ms, start, exact=exact)
    except CorruptBatch as error:
        path, offset = segment.path(log.directory), batch.header.base_offset
        raise CorruptStorage(path, batch.position, offset, error.reason, REMEDY) from None
