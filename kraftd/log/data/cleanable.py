"""How much of a compacted log may be cleaned, how dirty it is, and which segments become one.

The rules and their names are those of Kafka's LogCleanerManager and Cleaner.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.segment import DataSegment
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import MAX_RELATIVE_OFFSET, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import CorruptBatch

REMEDY = "It is not cleaned until the broker restarts. Restore the file from another replica"


class Cleanable(NamedTuple):
    """What a cleaning of a log would do: it reads keys from first_dirty to before first_uncleanable.

    is_reset: the checkpoint did not fit the log, and first_dirty takes its place. overdue_ms: for how long
    the oldest dirty record has waited beyond max.compaction.lag.ms.
    """

    first_dirty: int
    first_uncleanable: int
    is_reset: bool
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int

    @property
    def ratio(self) -> float:
        """The dirty part of what a cleaning reads."""
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, min_ratio: float) -> bool:
        """Return whether it is to be cleaned, by min.cleanable.dirty.ratio or by its age."""
        return self.ratio > min_ratio or (self.overdue_ms > 0 and self.dirty_bytes > 0)


def cleanable(log: DataLog, cleaned_to: int | None, last_stable_offset: int, now_ms: int) -> Cleanable:
    """What may be cleaned of a log, given the offset of its last cleaning. Raises StorageError."""
    segments, settings = log.segments, log.settings
    first_dirty = log.log_start if cleaned_to is None else cleaned_to
    is_reset = not log.log_start <= first_dirty <= log.log_end
    if is_reset:
        first_dirty = log.log_start
    dirty = _inactive_from(segments, first_dirty)
    limit = min(last_stable_offset, segments[-1].base_offset)
    if settings.min_compaction_lag_ms > 0:
        since_ms = now_ms - settings.min_compaction_lag_ms
        young = (one.base_offset for one in dirty if log.largest_timestamp_ms(one) > since_ms)
        limit = min(limit, next(young, limit))
    # A segment is cleaned as a whole, or not at all.
    first_uncleanable = (_inactive_from(segments, max(first_dirty, limit)) or segments[-1:])[0].base_offset
    clean_bytes = sum(one.end_position for one in segments if one.base_offset < first_dirty)
    dirty_bytes = sum(
        one.end_position
        for one in segments_from(segments, min(first_dirty, first_uncleanable))
        if one.base_offset < first_uncleanable
    )
    return Cleanable(
        first_dirty, first_uncleanable, is_reset, clean_bytes, dirty_bytes, _overdue_ms(log, dirty, now_ms)
    )


def _overdue_ms(log: DataLog, dirty: Sequence[DataSegment], now_ms: int) -> int:
    limit_ms = now_ms - max(log.settings.max_compaction_lag_ms, 0)
    times = (_first_timestamp_ms(log, one) for one in dirty)
    oldest_ms = min((time_ms for time_ms in times if time_ms > 0), default=limit_ms)
    return max(limit_ms - oldest_ms, 0)


def _first_timestamp_ms(log: DataLog, segment: DataSegment) -> int:
    try:
        return segment.first_timestamp_ms(log.directory, log.opened)
    except CorruptBatch as error:
        path = segment.path(log.directory)
        raise CorruptStorage(path, error.position, segment.base_offset, error.reason, REMEDY) from None


def segments_from(segments: Sequence[DataSegment], offset: int) -> list[DataSegment]:
    """The segments from the one that holds an offset on."""
    before = sum(1 for _ in takewhile(lambda one: one.base_offset <= offset, segments))
    return list(segments[max(0, before - 1) :])


def _inactive_from(segments: Sequence[DataSegment], offset: int) -> list[DataSegment]:
    return [] if offset >= segments[-1].base_offset else segments_from(segments[:-1], offset)


def groups(log: DataLog, end_offset: int, first_uncleanable: int) -> list[list[DataSegment]]:
    """The segments that begin before end_offset, in groups of which each becomes one segment."""
    settings, directory = log.settings, log.directory
    segments = [one for one in log.segments if one.base_offset < end_offset]
    ends = [one.base_offset - 1 for one in segments[1:]] + [first_uncleanable - 1]
    found: list[list[DataSegment]] = []
    sizes = (0, 0, 0)
    for segment, last_offset in zip(segments, ends, strict=True):
        indexes = (segment.path(directory, suffix) for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX))
        more = segment.end_position, *(log.opened(path).size_bytes() for path in indexes)
        joined = tuple(map(sum, zip(sizes, more, strict=True)))
        fits = (
            bool(found)
            and joined[0] <= settings.segment_bytes
            and max(joined[1:]) <= settings.segment_index_bytes
            and (not segment.end_position or last_offset - found[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if fits:
            found[-1].append(segment)
            sizes = joined[0], joined[1], joined[2]
        else:
            found.append([segment])
            sizes = more[0], more[1], more[2]
    return found
