"""The groups of a cluster from outside: which there are, who is in them, and how far behind they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import repeated
from kraftd.client.failures import NoLeader, Refused
from kraftd.client.group_member import PROTOCOL_TYPE, decode_assignment
from kraftd.client.group_offsets import BY_NAME, GroupOffsets
from kraftd.client.partition_reader import LATEST, PartitionReader
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_groups_response import DeleteGroupsResponse
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kraftd.messages.offset_fetch_response import OffsetFetchResponse
from kraftd.types import address_text

DEAD = "Dead"


class Member(NamedTuple):
    """A member of a group and the partitions that are assigned to it."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


class GroupPartition(NamedTuple):
    """A partition of a group. `committed` is None without an offset, `log_end` None without a leader."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    member: Member | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.committed)


class GroupState(NamedTuple):
    """A group; `coordinator` is an address."""

    group: str
    state: str
    protocol: str
    coordinator: str
    members: tuple[Member, ...]
    partitions: tuple[GroupPartition, ...]

    @property
    def lag(self) -> int:
        return sum(one.lag or 0 for one in self.partitions)


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    """The groups of every broker. Raises Unreachable where a broker does not answer, Refused."""
    await cluster.refresh([])

    async def of_broker(node_id: int) -> list[ListedGroup]:
        async def attempt(connection: Connection) -> tuple[int, list[ListedGroup]]:
            answer = await connection.ask(ListGroupsRequest(), ListGroupsResponse)
            return answer.error_code, answer.groups

        def connect() -> Awaitable[Connection]:
            return cluster.node(node_id)

        return await repeated(cluster, f"broker {node_id}", connect, attempt)

    found = await asyncio.gather(*map(of_broker, cluster.cache.nodes))
    return [group for groups in found for group in groups]


async def describe_group(cluster: Cluster, group: str) -> GroupState:
    """The group; its state is "Dead" if there is none. Raises Refused, Unreachable."""
    offsets = GroupOffsets(cluster, group)

    async def attempt(connection: Connection) -> tuple[int, DescribedGroup]:
        # The latest version has an error for a group that does not exist.
        answer = await connection.ask(DescribeGroupsRequest((group,)), DescribeGroupsResponse, max_version=5)
        found: DescribedGroup = answer.groups[0]
        return found.error_code, found

    described = await offsets.coordinator.ask(attempt)
    members = tuple(
        Member(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            _assigned(one.member_assignment) if described.protocol_type == PROTOCOL_TYPE else (),
        )
        for one in described.members
    )
    committed = await _committed(offsets)
    owners = {partition: member for member in members for partition in member.partitions}
    partitions = sorted(committed.keys() | owners.keys())
    ends = await asyncio.gather(*(_log_end(cluster, partition) for partition in partitions))
    connection = await offsets.coordinator.connection()
    return GroupState(
        group,
        described.group_state,
        described.protocol_data,
        address_text((connection.host, connection.port)),
        members,
        tuple(
            GroupPartition(*partition, committed.get(partition), end, owners.get(partition))
            for partition, end in zip(partitions, ends, strict=True)
        ),
    )


async def delete_group(cluster: Cluster, group: str) -> int:
    """Delete the group; returns Kafka's error code, 0 if it is gone. Raises Unreachable."""
    offsets = GroupOffsets(cluster, group)

    async def attempt(connection: Connection) -> tuple[int, None]:
        answer = await connection.ask(DeleteGroupsRequest((group,)), DeleteGroupsResponse)
        return answer.results[0].error_code, None

    try:
        await offsets.coordinator.ask(attempt)
    except Refused as error:
        return error.code
    return 0


async def _committed(offsets: GroupOffsets) -> dict[tuple[str, int], int]:
    async def attempt(connection: Connection) -> tuple[int, dict[tuple[str, int], int]]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(offsets.group, topics=None)])
        answer = await connection.ask(request, OffsetFetchResponse, max_version=BY_NAME)
        found = answer.groups[0]
        return found.error_code, {
            (topic.name, one.partition_index): one.committed_offset
            for topic in found.topics
            for one in topic.partitions
            if not one.error_code and one.committed_offset >= 0
        }

    return await offsets.coordinator.ask(attempt)


async def _log_end(cluster: Cluster, partition: tuple[str, int]) -> int | None:
    """The end of a partition's log; None for one that has no leader, or is gone."""
    try:
        found = await PartitionReader(cluster, *partition).list_offset(LATEST)
    except (NoLeader, Refused):
        return None
    return int(found.offset)


def _assigned(assignment: bytes) -> tuple[tuple[str, int], ...]:
    return tuple(
        (topic, index) for topic, indexes in decode_assignment(assignment).items() for index in indexes
    )
