"""Where a share group begins in each partition (KIP-932), at its coordinator. Raises Refused, Unreachable."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from kraftd.client.connection import Connection
from kraftd.client.group_offsets import GroupOffsets, Place
from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kraftd.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from kraftd.named_tuple import NamedTuple


class Progress(NamedTuple):
    """How far a share group has come in a partition: the offset before which all records are done, and how
    many from there on are not done yet; None if the coordinator does not know.
    """

    start_offset: int
    lag: int | None


async def fetch_share_offsets(offsets: GroupOffsets) -> dict[Place, Progress]:
    """The progress in the partitions where the group has begun."""
    request = DescribeShareGroupOffsetsRequest(
        [DescribeShareGroupOffsetsRequestGroup(offsets.group, topics=None)]
    )

    async def attempt(connection: Connection) -> tuple[int, dict[Place, Progress]]:
        answer = await connection.ask(request, DescribeShareGroupOffsetsResponse)
        found = answer.groups[0]
        return found.error_code, {
            (topic.topic_name, one.partition_index): Progress(
                one.start_offset, one.lag if one.lag >= 0 else None
            )
            for topic in found.topics
            for one in topic.partitions
            if not one.error_code and one.start_offset >= 0
        }

    return await offsets.coordinator.ask(attempt)


async def alter_share_offsets(offsets: GroupOffsets, wanted: Mapping[Place, int]) -> None:
    """Have the group begin anew at other offsets."""
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic,
            [AlterShareGroupOffsetsRequestPartition(index, wanted[topic, index]) for _, index in places],
        )
        for topic, places in groupby(sorted(wanted), key=lambda place: place[0])
    ]
    request = AlterShareGroupOffsetsRequest(offsets.group, topics)

    async def attempt(connection: Connection) -> tuple[int, None]:
        answer = await connection.ask(request, AlterShareGroupOffsetsResponse)
        codes = (one.error_code for topic in answer.responses for one in topic.partitions)
        return answer.error_code or next(filter(None, codes), 0), None

    await offsets.coordinator.ask(attempt)
