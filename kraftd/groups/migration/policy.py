"""Which changes of protocol `group.consumer.migration.policy` allows, in any case."""

from __future__ import annotations

from kraftd.groups.config import GroupConfig


def allows_upgrade(config: GroupConfig) -> bool:
    """Return whether a classic group with members may become a consumer group."""
    return config.group_consumer_migration_policy.lower() in ("bidirectional", "upgrade")


def allows_downgrade(config: GroupConfig) -> bool:
    """Return whether a consumer group with members may become a classic one."""
    return config.group_consumer_migration_policy.lower() in ("bidirectional", "downgrade")


def allows_classic_members(config: GroupConfig) -> bool:
    """Return whether members with the classic protocol may join a consumer group."""
    return config.group_consumer_migration_policy.lower() != "disabled"
