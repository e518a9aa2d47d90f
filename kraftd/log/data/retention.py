"""Removes the segments that retention.bytes, retention.ms and the log start no longer keep, as Kafka does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.segment import DataSegment
from kraftd.wire.producer_snapshot import SnapshotEntry

Producers = Callable[[], Iterable[SnapshotEntry]]


def remove_expired(log: DataLog, now_ms: int, high_watermark: int, producers: Producers | None = None) -> int:
    """Remove what may go below the high watermark; returns the number of segments.

    If all records go, the log first gets an empty segment, for whose snapshot producers gives the state.
    Raises StorageError.
    """
    removed = _remove(log, now_ms, high_watermark, producers, _before_log_start(log))
    if log.settings.deletes:
        removed += _remove(log, now_ms, high_watermark, producers, _beyond_size(log))
        removed += _remove(log, now_ms, high_watermark, producers, _beyond_time(log, now_ms))
    return removed


Goes = Callable[[DataSegment, DataSegment | None], bool]
"""Given a segment and the one behind it: whether it may go. It is asked once each, oldest first."""


def _remove(log: DataLog, now_ms: int, high_watermark: int, producers: Producers | None, goes: Goes) -> int:
    segments = log.segments
    count = 0
    for at, segment in enumerate(segments):
        behind = segments[at + 1] if at + 1 < len(segments) else None
        end = log.log_end if behind is None else behind.base_offset
        if high_watermark < end or (behind is None and not segment.end_position):
            break
        if not goes(segment, behind):
            break
        count += 1
    if count == 0:
        return 0
    if count == len(segments):
        log.roll(now_ms, producers)
    log.remove_oldest(count, now_ms)
    return count


def _before_log_start(log: DataLog) -> Goes:
    return lambda _, behind: behind is not None and behind.base_offset <= log.log_start


def _beyond_size(log: DataLog) -> Goes:
    limit_bytes = log.settings.retention_bytes
    over_bytes = log.size_bytes - limit_bytes if limit_bytes >= 0 else -1

    def goes(segment: DataSegment, _: DataSegment | None) -> bool:
        nonlocal over_bytes
        if over_bytes < 0 or over_bytes < segment.end_position:
            return False
        over_bytes -= segment.end_position
        return True

    return goes


def _beyond_time(log: DataLog, now_ms: int) -> Goes:
    limit_ms = log.settings.retention_ms
    return lambda segment, _: limit_ms >= 0 and now_ms - log.largest_timestamp_ms(segment) > limit_ms
