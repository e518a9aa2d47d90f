"""The settings of the group coordinator, from a broker's configuration."""

from __future__ import annotations

from kraftd.configdef.node import NodeConfig
from kraftd.groups.config import GroupConfig

MINUTE_MS = 60_000


def group_config(static: NodeConfig) -> GroupConfig:
    """Kafka's keys of groups and offsets."""
    integer = static.integer
    return GroupConfig(
        offsets_retention_ms=integer("offsets.retention.minutes") * MINUTE_MS,
        offsets_retention_check_interval_ms=integer("offsets.retention.check.interval.ms"),
        offsets_topic_num_partitions=integer("offsets.topic.num.partitions"),
        offset_metadata_max_bytes=integer("offset.metadata.max.bytes"),
        offsets_commit_timeout_ms=integer("offsets.commit.timeout.ms"),
        offsets_load_buffer_bytes=integer("offsets.load.buffer.size"),
        group_min_session_timeout_ms=integer("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=integer("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=integer("group.initial.rebalance.delay.ms"),
        group_max_size=integer("group.max.size"),
    )
