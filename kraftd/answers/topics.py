"""Topics as clients see them: leaders, replicas and what is offline, by the endpoints of one listener.

The rules are those of Kafka's KRaftMetadataCache.
"""

from __future__ import annotations

from itertools import islice

from kraftd.controller.topics.names import topic_name_problem
from kraftd.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kraftd.metadata.image import Image
from kraftd.metadata.state import BrokerState, PartitionState, TopicState
from kraftd.types import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
)
from kraftd.wire.error_code import ErrorCode

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class TopicReader:
    """Describes topics to clients of one listener, as of one moment."""

    def __init__(self, image: Image, listener: str, version: int) -> None:
        self._brokers = image.brokers
        self._reachable = {
            broker.id for broker in image.brokers.values() if broker.listener(listener) is not None
        }
        self._online = {one for one in self._reachable if not image.brokers[one].fenced}
        self._missing_listener = (
            ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        )
        self._only_online = version == 0
        self._offline: dict[tuple[tuple[int, ...], tuple[bytes, ...]], tuple[int, ...]] = {}

    def topic(self, topic: TopicState, max_partitions: int | None = None) -> MetadataResponseTopic:
        """A topic, with only its first partitions if those are enough."""
        partition = self.partition
        partitions = [
            partition(index, state) for index, state in islice(topic.partitions.items(), max_partitions)
        ]
        return MetadataResponseTopic(0, topic.name, topic.id, topic.name in INTERNAL_TOPICS, partitions)

    def partition(self, index: int, state: PartitionState) -> MetadataResponsePartition:
        replicas, isr, leader = state.replicas, state.isr, state.leader
        error = 0
        if leader not in self._reachable:
            error = self._missing_listener if leader in self._brokers else ErrorCode.LEADER_NOT_AVAILABLE
            leader = -1
        if self._only_online:
            online = self._online
            shown = tuple(one for one in replicas if one in online)
            shown_isr = tuple(one for one in isr if one in online)
            if not error and (len(shown) < len(replicas) or len(shown_isr) < len(isr)):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
            replicas, isr = shown, shown_isr
        return MetadataResponsePartition(
            error, index, leader, state.leader_epoch, replicas, isr, self.offline_replicas(state)
        )

    def leader(self, state: PartitionState) -> int:
        return state.leader if state.leader in self._reachable else -1

    def offline_replicas(self, state: PartitionState) -> tuple[int, ...]:
        """Replicas on brokers that are fenced, gone or without the listener, or in an offline directory."""
        placement = (state.replicas, state.directories)
        offline = self._offline.get(placement)
        if offline is None:
            known = zip(state.replicas, state.directories, strict=True)
            offline = tuple(
                replica
                for replica, directory in known
                if replica not in self._online or not has_online(self._brokers[replica], directory)
            )
            self._offline[placement] = offline
        return offline


def has_online(broker: BrokerState, directory: bytes) -> bool:
    """Return whether the directory is online on the broker, as far as the broker has reported (KIP-858)."""
    if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    if directory == DIRECTORY_LOST:
        return False
    return not broker.directories or directory in broker.directories


def name_error(name: str) -> ErrorCode:
    """The error for a topic that is not there."""
    invalid = topic_name_problem(name) is not None
    return ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
