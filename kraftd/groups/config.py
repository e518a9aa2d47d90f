"""The settings of a group coordinator, with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assignor

MAX_INT = 2**31 - 1
# Kafka gives a new member five minutes to be seen again after its first JoinGroup is answered.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class GroupConfig(Struct, frozen=True, kw_only=True):
    """Kafka's keys (`NodeConfig.settings`), two limits, and the assignors that
    `group.consumer.assignors` names.

    offsets_topic_num_partitions: what counts until the topic is there. max_batch_bytes: the most that one
    batch of records may take, until the topic's limit is known. members_max_bytes: what all members may hold
    in memory; Kafka has no limit.
    """

    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50
    offsets_topic_compression_codec: int = 0
    offset_metadata_max_bytes: int = 4096
    offsets_commit_timeout_ms: int = 5000
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3000
    group_max_size: int = MAX_INT
    group_coordinator_rebalance_protocols: list[str] = field(
        default_factory=lambda: ["classic", "consumer", "streams"]
    )
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = MAX_INT
    group_consumer_assignors: list[str] = field(default_factory=lambda: ["uniform", "range"])
    assignors: Mapping[str, Assignor] = field(default_factory=lambda: ASSIGNORS)
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5000
    group_share_min_heartbeat_interval_ms: int = 5000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_assignment_interval_ms: int = 1000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_share_max_size: int = 200
    max_batch_bytes: int = 1024 * 1024 + 12
    members_max_bytes: int = 256 * 1024 * 1024
