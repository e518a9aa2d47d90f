"""The timings of a consumer group: its own configs, within the broker's bounds, else those of the broker."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.groups.call import Metadata
from kraftd.groups.config import GroupConfig


def session_timeout_ms(config: GroupConfig, own: Mapping[str, str]) -> int:
    """How long a member may be silent."""
    return within(
        own.get("consumer.session.timeout.ms"),
        config.group_consumer_min_session_timeout_ms,
        config.group_consumer_max_session_timeout_ms,
        config.group_consumer_session_timeout_ms,
    )


def heartbeat_interval_ms(config: GroupConfig, own: Mapping[str, str]) -> int:
    """How often a member is to send a heartbeat."""
    return within(
        own.get("consumer.heartbeat.interval.ms"),
        config.group_consumer_min_heartbeat_interval_ms,
        config.group_consumer_max_heartbeat_interval_ms,
        config.group_consumer_heartbeat_interval_ms,
    )


def assignment_interval_ms(config: GroupConfig, metadata: Metadata, group_id: str) -> int:
    """The least time between two targets. That of the broker may change while it runs."""
    return own_or_inherited(
        metadata,
        group_id,
        "consumer.assignment.interval.ms",
        config.group_consumer_min_assignment_interval_ms,
        config.group_consumer_max_assignment_interval_ms,
        config.group_consumer_assignment_interval_ms,
    )


def own_or_inherited(metadata: Metadata, group_id: str, key: str, least: int, most: int, of_file: int) -> int:
    """A group's own value of a key, else the one that the broker was given while it runs, else its file's."""
    of_broker = within(metadata.dynamic_config(f"group.{key}"), least, most, of_file)
    return within(metadata.group_configs(group_id).get(key), least, most, of_broker)


def within(own: str | None, least: int, most: int, inherited: int) -> int:
    """The group's own value within the broker's bounds; without one, the inherited value."""
    return inherited if own is None else max(least, min(most, int(own)))
