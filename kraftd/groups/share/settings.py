"""The timings of a share group: its own configs, within the broker's bounds, else those of the broker."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.groups.call import Metadata
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.settings import own_or_inherited, within


def session_timeout_ms(config: GroupConfig, own: Mapping[str, str]) -> int:
    """How long a member may be silent."""
    return within(
        own.get("share.session.timeout.ms"),
        config.group_share_min_session_timeout_ms,
        config.group_share_max_session_timeout_ms,
        config.group_share_session_timeout_ms,
    )


def heartbeat_interval_ms(config: GroupConfig, own: Mapping[str, str]) -> int:
    """How often a member is to send a heartbeat."""
    return within(
        own.get("share.heartbeat.interval.ms"),
        config.group_share_min_heartbeat_interval_ms,
        config.group_share_max_heartbeat_interval_ms,
        config.group_share_heartbeat_interval_ms,
    )


def assignment_interval_ms(config: GroupConfig, metadata: Metadata, group_id: str) -> int:
    """The least time between two targets. That of the broker may change while it runs."""
    return own_or_inherited(
        metadata,
        group_id,
        "share.assignment.interval.ms",
        config.group_share_min_assignment_interval_ms,
        config.group_share_max_assignment_interval_ms,
        config.group_share_assignment_interval_ms,
    )


def retry_interval_ms(config: GroupConfig) -> int:
    """After how long the share coordinator is asked again to begin partitions, if no answer came."""
    return max(config.group_share_initialize_retry_interval_ms, config.offsets_commit_timeout_ms)
