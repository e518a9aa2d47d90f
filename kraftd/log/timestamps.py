"""Offsets by time, for ListOffsets."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.log.errors import CorruptStorage
from kraftd.log.partition_log import PartitionLog
from kraftd.log.segment import Segment
from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import Batch, CorruptBatch, RecordView, iter_batches, records

_READ_BYTES = 64 << 10


class TimestampAndOffset(NamedTuple):
    """A record's timestamp and its offset."""

    timestamp_ms: int
    offset: int


def offset_for_timestamp(log: PartitionLog, timestamp_ms: int, end_offset: int) -> TimestampAndOffset | None:
    """The first record below end_offset whose timestamp is at least timestamp_ms; None without one.

    Reads at most an index interval of one segment, and a batch. Raises CorruptStorage.
    """
    for segment in _segments(log, end_offset):
        if segment.index.max_time[0] < timestamp_ms:
            continue
        start = max(segment.index.offset_before(timestamp_ms), log.log_start)
        for batch in _batches(log, start, end_offset):
            if batch.header.max_timestamp_ms < timestamp_ms:
                continue
            for record in _records(log, batch):
                if record.timestamp_ms >= timestamp_ms and log.log_start <= record.offset < end_offset:
                    return TimestampAndOffset(record.timestamp_ms, record.offset)
    return None


def max_timestamp(log: PartitionLog, end_offset: int) -> TimestampAndOffset | None:
    """The first record with the largest timestamp of all below end_offset; None in an empty log.

    Raises CorruptStorage.
    """
    best: Batch | None = None
    for segment in _segments(log, end_offset):
        timestamp_ms, offset = segment.index.max_time
        if best is not None and timestamp_ms <= best.header.max_timestamp_ms:
            continue
        if log.log_start <= offset < end_offset:
            found = next(_batches(log, offset, end_offset), None)
        else:  # that record is past end_offset: walk the segment for the largest before it
            start = max(segment.base_offset, log.log_start)
            seen = _batches(log, start, min(end_offset, _end_of(log, segment)))
            found = max(seen, key=lambda batch: batch.header.max_timestamp_ms, default=None)
        if found is not None and (
            best is None or found.header.max_timestamp_ms > best.header.max_timestamp_ms
        ):
            best = found
    if best is None:
        return None
    largest_ms = best.header.max_timestamp_ms
    for record in _records(log, best):
        if record.timestamp_ms == largest_ms:
            return TimestampAndOffset(largest_ms, record.offset)
    return TimestampAndOffset(largest_ms, best.header.last_offset)


def _segments(log: PartitionLog, end_offset: int) -> list[Segment]:
    """The segments that hold records of the log below end_offset."""
    return [
        segment
        for segment in log.segments
        if segment.base_offset < end_offset and _end_of(log, segment) > log.log_start and segment.end_position
    ]


def _end_of(log: PartitionLog, segment: Segment) -> int:
    later = [each.base_offset for each in log.segments if each.base_offset > segment.base_offset]
    return later[0] if later else log.log_end


def _batches(log: PartitionLog, start: int, end_offset: int) -> Iterator[Batch]:
    """The whole batches from the one that holds start to the last that ends at or below end_offset."""
    while start < end_offset and (data := log.read(start, _READ_BYTES, end_offset)):
        for batch in iter_batches(data, verify=False):
            yield batch
            start = batch.header.next_offset


def _records(log: PartitionLog, batch: Batch) -> list[RecordView]:
    try:
        return records(batch)
    except CorruptBatch as error:
        raise CorruptStorage(
            log.directory,
            batch.position,
            batch.header.base_offset,
            error.reason,
            "Restore the file, or move the directory aside and let this node catch up from the leader",
        ) from None
