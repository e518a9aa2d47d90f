"""The groups of a cluster from outside: which there are, and how one is deleted."""

from __future__ import annotations

from kraftd.client.all_brokers import ask_all
from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import GROUP, partitions_without_coordinator
from kraftd.client.failures import Refused
from kraftd.client.group_offsets import GroupOffsets
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_groups_response import DeleteGroupsResponse
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListedGroup, ListGroupsResponse


async def list_groups(cluster: Cluster) -> tuple[list[ListedGroup], dict[str, str]]:
    """The groups of every broker, and whose are missing, and why: a broker's that does not answer, or those
    of partitions without a leader.

    Raises Unreachable if none does, Refused.
    """

    async def attempt(connection: Connection) -> tuple[int, list[ListedGroup]]:
        answer = await connection.ask(ListGroupsRequest(), ListGroupsResponse)
        return answer.error_code, answer.groups

    answers, missing = await ask_all(cluster, attempt)
    missing |= await partitions_without_coordinator(cluster, GROUP)
    return [group for groups in answers.values() for group in groups], missing


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
