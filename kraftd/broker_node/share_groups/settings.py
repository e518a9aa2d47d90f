"""The settings of share groups: of the broker, and of a group."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kraftd.configdef.definition import group_def
from kraftd.configdef.rules import duration_seconds
from kraftd.named_tuple import NamedTuple
from kraftd.partition.reading import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Isolation
from kraftd.partition.share.share_partition import ShareLimits

MS_PER_SECOND = 1_000


class ShareConfig(Struct, frozen=True, kw_only=True):
    """Kafka's keys (`NodeConfig.settings`). What a group has set stays between min and max."""

    group_share_delivery_count_limit: int = 5
    group_share_min_delivery_count_limit: int = 2
    group_share_max_delivery_count_limit: int = 10
    group_share_record_lock_duration_ms: int = 30_000
    group_share_min_record_lock_duration_ms: int = 15_000
    group_share_max_record_lock_duration_ms: int = 60_000
    group_share_partition_max_record_locks: int = 2_000
    group_share_min_partition_max_record_locks: int = 100
    group_share_max_partition_max_record_locks: int = 4_000
    group_share_max_share_sessions: int = 2_000


class GroupSettings(NamedTuple):
    """What holds for one group. `reset`: where it begins to read a partition, as share.auto.offset.reset."""

    limits: ShareLimits
    isolation: Isolation
    reset: str

    def start_timestamp_ms(self, wall_ms: int) -> int:
        """The timestamp, special or not, of the first record to read of a partition."""
        if self.reset == "latest":
            return LATEST_TIMESTAMP
        if self.reset == "earliest":
            return EARLIEST_TIMESTAMP
        seconds = duration_seconds(self.reset.partition(":")[2])
        assert seconds is not None
        return wall_ms - int(seconds * MS_PER_SECOND)


def settings_of(config: ShareConfig, own: Mapping[str, str]) -> GroupSettings:
    """The settings of a group by the configs that were set for it."""

    def number(name: str) -> int:
        of_broker: int = getattr(config, f"group_share_{name}")
        text = own.get("share." + name.replace("_", "."))
        if text is None:
            return of_broker
        least: int = getattr(config, f"group_share_min_{name}")
        most: int = getattr(config, f"group_share_max_{name}")
        return max(least, min(most, int(text)))

    def value(name: str) -> object:
        key = group_def()[name]
        return key.parse(own[name]) if name in own else key.default_value()

    limits = ShareLimits(
        delivery_count_limit=number("delivery_count_limit"),
        partition_max_record_locks=number("partition_max_record_locks"),
        record_lock_duration_ms=number("record_lock_duration_ms"),
        renew_acknowledge_enable=bool(value("share.renew.acknowledge.enable")),
    )
    is_committed = value("share.isolation.level") == "read_committed"
    isolation = Isolation.LAST_STABLE if is_committed else Isolation.HIGH_WATERMARK
    return GroupSettings(limits, isolation, str(value("share.auto.offset.reset")))
