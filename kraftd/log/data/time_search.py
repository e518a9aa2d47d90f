"""Offsets by time in an ordinary partition's log, for ListOffsets, as Kafka finds them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import REMEDY
from kraftd.log.data.segment import DataSegment
from kraftd.log.errors import CorruptStorage
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches, records

_READ_BYTES = 64 << 10
_LOG_APPEND_TIME = 0x08  # attribute: the largest timestamp is that of every record


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
            for timestamp, offset in _records(log, segment, batch):
                if timestamp >= timestamp_ms and offset >= log.log_start:
                    return FoundRecord(timestamp, offset, batch.header.leader_epoch)
        return None
    return None


def max_timestamp(log: DataLog) -> FoundRecord | None:
    """The first record with the largest timestamp of all; None without records.

    Raises CorruptStorage, StorageError.
    """
    directory = log.directory
    newest, largest = log.segments[0], (-1, -1)
    for segment in log.segments:
        found = segment.max_time(directory, log.opened)
        if found[0] > largest[0]:
            newest, largest = segment, found
    if largest[0] < 0:
        return None
    for batch in _batches(log, newest, max(largest[1], log.log_start)):
        if batch.header.max_timestamp_ms == largest[0]:
            for timestamp, offset in _records(log, newest, batch):
                if timestamp == largest[0]:
                    return FoundRecord(timestamp, offset, batch.header.leader_epoch)
            return FoundRecord(largest[0], batch.header.last_offset, batch.header.leader_epoch)
    return None


def _batches(log: DataLog, segment: DataSegment, start: int) -> Iterator[Batch]:
    """The batches of a segment from the one that holds start on."""
    at = [each.base_offset for each in log.segments].index(segment.base_offset)
    end = log.segments[at + 1].base_offset if at + 1 < len(log.segments) else log.log_end
    start = max(start, segment.base_offset)
    while start < end and (data := log.read(start, _READ_BYTES, end)):
        for batch in iter_batches(data, verify=False):
            yield batch
            start = batch.header.next_offset


def _records(log: DataLog, segment: DataSegment, batch: Batch) -> Iterator[tuple[int, int]]:
    """Timestamp and offset of each record."""
    try:
        found = records(batch)
    except CorruptBatch as error:
        path, offset = segment.path(log.directory), batch.header.base_offset
        raise CorruptStorage(path, batch.position, offset, error.reason, REMEDY) from None
    if batch.header.attributes & _LOG_APPEND_TIME:
        return iter([(batch.header.max_timestamp_ms, record.offset) for record in found])
    return iter([(record.timestamp_ms, record.offset) for record in found])
