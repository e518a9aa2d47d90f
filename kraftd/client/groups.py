"""The groups of a cluster from outside: which there are, and how one is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import repeated
from kraftd.client.failures import Refused
from kraftd.client.group_offsets import GroupOffsets
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_groups_response import DeleteGroupsResponse
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListedGroup, ListGroupsResponse


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
