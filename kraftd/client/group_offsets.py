"""Offsets that a group has committed, each with the leader epoch of the record before it (KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import GROUP, Coordinator
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_fetch_response import OffsetFetchResponse
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.messages import consumer_group_describe_response, share_group_describe_response

    Assignment = consumer_group_describe_response.Assignment | share_group_describe_response.Assignment

Place = tuple[str, int]  # a topic's name and the index of a partition

BY_NAME = 9  # the last version of both APIs with topic names instead of ids
_ALSO_AGAIN = frozenset((ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def places_of(assignment: Assignment) -> tuple[Place, ...]:
    """The partitions of an assignment in the description of a group."""
    return tuple((one.topic_name, index) for one in assignment.topic_partitions for index in one.partitions)


class Committed(NamedTuple):
    """A committed offset; epoch -1 if its commit carried none."""

    offset: int
    epoch: int


class GroupOffsets:
    """A group's offsets, at its coordinator, which it follows. Raises Refused, Unreachable."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.group = group
        self.coordinator = Coordinator(cluster, GROUP, group, _ALSO_AGAIN)
        self._cluster = cluster

    def __repr__(self) -> str:
        return f"<GroupOffsets of {self.group}, {self.coordinator!r}>"

    async def commit(self, committed: Mapping[Place, Committed]) -> None:
        """Commit offsets, each with the leader epoch of the record before it."""
        topics = [
            OffsetCommitRequestTopic(
                topic,
                partitions=[
                    OffsetCommitRequestPartition(index, *committed[topic, index]) for _, index in places
                ],
            )
            for topic, places in groupby(sorted(committed), key=lambda place: place[0])
        ]
        request = OffsetCommitRequest(self.group, topics=topics)

        async def attempt(connection: Connection) -> tuple[int, None]:
            answer = await connection.ask(request, OffsetCommitResponse, max_version=BY_NAME)
            codes = (one.error_code for topic in answer.topics for one in topic.partitions)
            return next(filter(None, codes), 0), None

        await self.coordinator.ask(attempt)

    async def fetch_all(self) -> dict[Place, int]:
        """All committed offsets of the group."""
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group, topics=None)])

        async def attempt(connection: Connection) -> tuple[int, dict[Place, int]]:
            answer = await connection.ask(request, OffsetFetchResponse, max_version=BY_NAME)
            found = answer.groups[0]
            return found.error_code, {
                (topic.name, one.partition_index): one.committed_offset
                for topic in found.topics
                for one in topic.partitions
                if not one.error_code and one.committed_offset >= 0
            }

        return await self.coordinator.ask(attempt)

    async def fetch(self, topic: str, index: int) -> Committed | None:
        """The committed offset, None without one. From then on, metadata older than its epoch is refused."""
        wanted = OffsetFetchRequestTopics(topic, partition_indexes=(index,))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group, topics=[wanted])], require_stable=True
        )

        async def attempt(connection: Connection) -> tuple[int, Committed | None]:
            answer = await connection.ask(request, OffsetFetchResponse, max_version=BY_NAME)
            group = answer.groups[0]
            if group.error_code:
                return group.error_code, None
            partition = group.topics[0].partitions[0]
            return partition.error_code, Committed(
                partition.committed_offset, partition.committed_leader_epoch
            )

        found = await self.coordinator.ask(attempt)
        if found is None or found.offset < 0:
            return None
        self._cluster.cache.saw_epoch(topic, index, found.epoch)
        return found
