"""The share group of a world: its configs, its members, and whether it has been delivered everything."""

from __future__ import annotations

from typing import Any

from kraftd.controller.configs.resources import ResourceType
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.simulation.brokers.share_consumer import SHARE_GROUP, ShareConsumer
from kraftd.simulation.checkers.brokers.partitions import PartitionKey

SHARE_STATE_TOPIC, SHARE_STATE_PARTITIONS = "__share_group_state", 2


class ShareGroup:
    """See the module. Without members it does nothing."""

    def __init__(self, traffic: Any) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.consumers: list[ShareConsumer] = []
        self._delivered: dict[PartitionKey, tuple[int, int]] = {}  # start and end of logs that are delivered

    def place(self) -> None:
        """Draw the members."""
        count = self.world.rng("share group").between(2, 4)
        self.consumers = [ShareConsumer(self.traffic, number) for number in range(count)]

    def see_to_configs(self, leader: Any) -> None:
        """Let the group begin at the first records."""
        if self.consumers and not leader.node.image.config(ResourceType.GROUP, SHARE_GROUP):
            configs = [AlterableConfig("share.auto.offset.reset", 0, "earliest")]
            resource = AlterConfigsResource(ResourceType.GROUP, SHARE_GROUP, configs)
            request = IncrementalAlterConfigsRequest([resource])
            self.world.workload.ask(leader, request, 1, lambda _: None)

    def has_all(self) -> bool:
        """Return whether nothing is left to be delivered. Damage may prevent it."""
        return not self.consumers or all(map(self._is_delivered, range(self.traffic.partition_count)))

    def _is_delivered(self, index: int) -> bool:
        traffic = self.traffic
        leader = traffic.leader_of(traffic.steady, index)
        if leader is None:
            return False
        side, key = leader
        if traffic.partitions.is_damaged(key) or self._has_lost_state(key):
            return True
        log = side.logs.directories.logs.get((traffic.steady, index))
        if log is None:
            return False
        led = side.node.coordinators.shares.partitions.get(SharePartitionKey(SHARE_GROUP, *key))
        if led is not None and led.is_active and led.share.start_offset >= log.log_end:
            self._delivered[key] = log.log_start, log.log_end
        return key in self._delivered and self._delivered[key][1] >= log.log_end

    def _has_lost_state(self, key: PartitionKey) -> bool:
        """Return whether a loss of power took the share coordinator's state of a partition.

        The group knows that it was written, and does not write it again: as in Kafka, nothing is delivered.
        """
        if not self.traffic.shares.has_lost_power:
            return False
        wanted = SharePartitionKey(SHARE_GROUP, *key)
        coordinators = [side.node.coordinators.share_states.coordinator for side in self.traffic.sides()]
        return not any(wanted in shard.states for one in coordinators for shard in one.shards.values())

    def at_rest(self) -> None:
        """Check what has become of each record."""
        for key, (start, end) in self._delivered.items():
            if not self.traffic.partitions.is_damaged(key):
                self.traffic.shares.at_rest(key, start, end)

    def __repr__(self) -> str:
        return f"<ShareGroup of {self.consumers}>"
