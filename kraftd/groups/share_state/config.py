"""The settings of a share coordinator, with Kafka's defaults."""

from __future__ import annotations

from msgspec import Struct


class ShareStateConfig(Struct, frozen=True, kw_only=True):
    """Kafka's keys (`NodeConfig.settings`). max_batch_bytes: the most that one batch may take at first."""

    share_coordinator_state_topic_num_partitions: int = 50
    share_coordinator_state_topic_compression_codec: int = 0
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_write_timeout_ms: int = 5000
    share_coordinator_load_buffer_size: int = 5 * 1024 * 1024
    share_coordinator_state_topic_prune_interval_ms: int = 5 * 60 * 1000
    share_coordinator_cold_partition_snapshot_interval_ms: int = 5 * 60 * 1000
    max_batch_bytes: int = 1024 * 1024 + 12
