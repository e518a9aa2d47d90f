"""A partition of a broker's internal topic, loaded as a broker that takes it over would."""

from __future__ import annotations

from typing import Any

from kraftd.groups.effects import PartitionLoaded, ReadRecords, ScheduleLoading
from kraftd.groups.events import LoadingDue, PartitionElected, RecordsRead
from kraftd.groups.shards import Shards
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from testkit.client import Client


def end_of(client: Client, topic: str, partition: int) -> int:
    rows = [ListOffsetsPartition(partition, -1, -1)]
    answer = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(topic, rows)]), 7)
    end: int = answer.topics[0].partitions[0].offset
    return end


def load(
    coordinator: Shards[Any], client: Client, topic: str, partition: int, now_ms: int
) -> PartitionLoaded:
    """Load a partition of the broker by fetching it."""
    end = end_of(client, topic, partition)
    effects = coordinator.step(PartitionElected(partition, 1, 0, end), now_ms)
    while True:
        (effect,) = effects
        if isinstance(effect, ReadRecords):
            rows = [
                FetchPartition(partition, fetch_offset=effect.offset, partition_max_bytes=effect.max_bytes)
            ]
            request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic, partitions=rows)])
            found = client.call(request, 11).responses[0].partitions[0]
            read = RecordsRead(partition, 1, found.records, found.high_watermark)
            effects = coordinator.step(read, now_ms)
        elif isinstance(effect, ScheduleLoading):
            effects = coordinator.step(LoadingDue(partition, 1), now_ms)
        else:
            assert isinstance(effect, PartitionLoaded), effect
            return effect
