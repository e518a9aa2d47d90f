"""The settings of an ordinary partition's log: its topic's configs that concern the disk."""

from __future__ import annotations

from kraftd.named_tuple import NamedTuple

NEVER = (1 << 63) - 1


class DataLogSettings(NamedTuple):
    """Kafka's topic configs by their names, dots as underscores, with Kafka's defaults.

    deletes, compacts: cleanup.policy has "delete", "compact". A retention of -1 is none. Of a compacted
    topic segment_ms is at most its max.compaction.lag.ms. A topic's partitions share one object.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3600 * 1000
    file_delete_delay_ms: int = 60_000
    deletes: bool = True
    compacts: bool = False
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
