"""The sizes and times of a partition's log."""

from __future__ import annotations

from kraftd.log.segment import INDEX_INTERVAL_BYTES
from kraftd.named_tuple import NamedTuple


class LogSettings(NamedTuple):
    """metadata.log.segment.bytes, metadata.log.segment.ms, index.interval.bytes. tail_bytes limits the memory
    for the log's newest part; replay_bytes that for what opening has read, until it is replayed.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    tail_bytes: int = 2 << 20  # what followers that keep up lack; others read the page cache
    replay_bytes: int = 32 << 20
