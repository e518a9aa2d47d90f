"""Finds the leader of a quorum, and waits for one as long as the user allows."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.cli.wait_notice import waiting
from kraftd.named_tuple import NamedTuple
from kraftd.types import address_text

if TYPE_CHECKING:
    from kraftd.client.connection import Connection
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.messages.describe_quorum_response import PartitionData

CONTROLLERS = 2  # DescribeCluster's type of endpoint (KIP-919)
POLL_S = 0.1
NO_LEADER = "The quorum has no leader now; try again in a moment. The result of each address:"
NO_LEADER_REMEDY = (
    "To elect, a majority of the voters must run and reach each other: start those that do not answer. "
    "kraftd doctor examines each node; where a majority is lost for good, see kraftd quorum recover."
)
OF_SILENT_CONTROLLERS = (
    "a broker answers, but its controllers do not answer it in time; name the controllers of its file"
)
TRIES = 4  # one controller gets this part of the user's time: if it is frozen, another may lead


class Quorum(NamedTuple):
    """The leader's description of the quorum, its own endpoint, and the voters' endpoints by id.

    `refused` has a line for each node that a kraftd leader refuses, or that is ahead of it. `address` is a
    broker's if the bootstrap addresses are brokers', which forward the leader's answers.
    """

    cluster_id: str
    partition: PartitionData
    address: tuple[str, int]
    endpoints: Mapping[int, list[str]]
    refused: Sequence[str] = ()
    by_broker: bool = False

    @property
    def leaders_address(self) -> tuple[str, int]:
        """The leader's own address, for requests that brokers do not forward."""
        own = self.endpoints.get(self.partition.leader_id)
        return endpoint_address(own[0]) if self.by_broker and own else self.address


class NoLeader(CommandFailure):
    """Controllers answer, but none leads now. `reasons` has the explanations of kraftd's, a line for each
    peer.
    """

    def __init__(self, text: str = "it answers, and knows no leader") -> None:
        super().__init__(text, FAILED)
        self.reasons: list[str] = []


async def ask_leader(bootstrap: str, timeout_s: float) -> Quorum:
    """The leader's description of the quorum, as soon as there is a leader.

    Raises Unreachable at once when no node listens, NoAnswer or NoLeader when none answers or leads in time.
    """
    import asyncio

    from kraftd.client.failures import NoAnswer

    deadline_s = time.monotonic() + timeout_s
    addresses = parse_addresses(bootstrap)
    async with waiting(f"for a leader, {timeout_s:g} s at most"):
        while True:
            try:
                return await _ask_once(addresses, timeout_s / TRIES)
            except (NoLeader, NoAnswer):
                if time.monotonic() + POLL_S > deadline_s:
                    raise
            await asyncio.sleep(POLL_S)


def parse_addresses(bootstrap: str, option: str = "--bootstrap") -> list[tuple[str, int]]:
    """The addresses of HOST:PORT,...; as in Kafka, an empty item, as behind a comma at the end, is none."""
    from kraftd.configdef.addresses import parse_host_port

    addresses = []
    for address in filter(str.strip, bootstrap.split(",")) if bootstrap.strip(", ") else [bootstrap]:
        try:
            addresses.append(parse_host_port(address.strip()))
        except ValueError as error:
            raise click.BadParameter(f"{address}: {error}", param_hint=option) from None
    return addresses


async def connect(address: tuple[str, int], timeout_s: float) -> Connection:
    """A connection of a command to a controller."""
    from kraftd.client.connection import Connection

    return await Connection.open(*address, timeout_s, client_id="kraftd-cli")


async def _ask_once(addresses: list[tuple[str, int]], timeout_s: float) -> Quorum:
    """Ask one node after the other for the leader, until the leader itself answers."""
    from kraftd.client.failures import NoAnswer, Unreachable

    failures: list[Exception] = []
    lines: list[str] = []
    reasons: list[str] = []
    for address in dict.fromkeys(addresses):
        name = address_text(address)
        try:
            async with await connect(address, timeout_s) as connection:
                try:
                    return await describe_quorum(connection, address)
                except NoLeader as failure:
                    reasons += [f"{name} says: {one}" for one in failure.reasons]
                    leader = await _find_leader(connection)
            try:
                async with await connect(leader, timeout_s) as connection:
                    return await describe_quorum(connection, leader)
            except Unreachable as failure:  # it led until a moment ago
                raise NoLeader(f"it answers, and names a leader that does not: {failure}") from None
        except Unreachable as failure:
            failures.append(failure)
            lines.append(str(failure))
        except NoLeader as failure:
            failures.append(failure)
            lines.append(f"{name}: {failure}")
    if any(isinstance(failure, NoLeader) for failure in failures):
        raise NoLeader("\n".join(dict.fromkeys([NO_LEADER, *lines, *reasons, NO_LEADER_REMEDY])))
    text = "\n".join(dict.fromkeys(lines))
    raise NoAnswer(text) if any(isinstance(one, NoAnswer) for one in failures) else Unreachable(text)


async def why_no_leader(addresses: list[tuple[str, int]], timeout_s: float) -> Exception | None:
    """Each controller's explanation why none leads, or which of them does not answer.

    None if one leads by now.
    """
    from kraftd.client.failures import Unreachable

    try:
        await _ask_once(addresses, timeout_s / TRIES)
    except (NoLeader, Unreachable) as failure:
        return failure
    except CommandFailure:
        pass  # a leader that does not let this user ask for the quorum
    return None


async def leaderless_for(address: tuple[str, int], timeout_s: float) -> str | None:
    """A kraftd controller's words for how long it has had no leader; None if it does not say."""
    from kraftd.client.failures import Unreachable

    try:
        async with await connect(address, timeout_s) as connection:
            await describe_quorum(connection, address)
    except NoLeader as failure:
        return failure.reasons[0] if failure.reasons else None
    except (Unreachable, CommandFailure):
        pass
    return None


@asynccontextmanager
async def explained(addresses: list[tuple[str, int]], timeout_s: float) -> AsyncIterator[None]:
    """If no leader answered in time, replace that failure by each controller's explanation."""
    from kraftd.client import failures

    try:
        yield
    except (failures.NoLeader, failures.Unreachable):
        why = await why_no_leader(addresses, timeout_s)
        if why is None:
            raise
        raise why from None


async def _find_leader(connection: Connection) -> tuple[str, int]:
    """The active controller's address, from this controller. Raises NoLeader if it knows none."""
    from kraftd.client.failures import NoAnswer

    try:
        cluster, _ = await _describe_cluster(connection)
    except NoAnswer:
        raise NoLeader from None  # a controller that does not know a leader yet delays its answer
    leader = next((node for node in cluster.brokers if node.broker_id == cluster.controller_id), None)
    if leader is None:
        raise NoLeader
    return leader.host, leader.port


async def _describe_cluster(connection: Connection) -> tuple[DescribeClusterResponse, bool]:
    """A node's description of the cluster, and whether it is a broker."""
    from kraftd.messages.describe_cluster_request import DescribeClusterRequest
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.wire.error_code import ErrorCode

    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    cluster = await connection.ask(request, DescribeClusterResponse)
    is_broker = cluster.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    if is_broker:
        cluster = await connection.ask(DescribeClusterRequest(), DescribeClusterResponse)
    check(cluster.error_code, cluster.error_message)
    return cluster, is_broker


async def describe_quorum(connection: Connection, address: tuple[str, int]) -> Quorum:
    """The quorum as the controller at that address describes it. Raises NoLeader if it does not lead."""
    from kraftd.client.failures import NoAnswer
    from kraftd.messages import describe_quorum_request as m
    from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
    from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
    from kraftd.wire.api import ApiKey

    topic = m.TopicData(METADATA_TOPIC, [m.PartitionData(METADATA_PARTITION)])
    try:
        answer = await connection.ask(m.DescribeQuorumRequest([topic]), DescribeQuorumResponse)
    except NoAnswer:
        if connection.serves(ApiKey.VOTE):
            raise
        raise NoAnswer(f"{connection.address}: {OF_SILENT_CONTROLLERS}") from None
    check(answer.error_code, answer.error_message)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code, partition.error_message)
    endpoints = {
        node.node_id: [endpoint_text(one.name, one.host, one.port) for one in node.listeners]
        for node in answer.nodes
    }
    cluster, is_broker = await _describe_cluster(connection)
    refused = (answer.error_message or "").splitlines()
    return Quorum(cluster.cluster_id, partition, address, endpoints, refused, is_broker)


def leaders_time_ms(partition: PartitionData) -> int | None:
    """The leader's clock when it answered, None if the answer lacks it."""
    for voter in partition.current_voters:
        if voter.replica_id == partition.leader_id and voter.last_fetch_timestamp >= 0:
            return voter.last_fetch_timestamp
    return None


def endpoint_text(listener: str, host: str, port: int) -> str:
    """An endpoint as written in `listeners`, and as Kafka's tools show it."""
    return f"{listener}://{address_text((host, port))}"


def endpoint_address(text: str) -> tuple[str, int]:
    """The host and port in a text of `endpoint_text`. Raises ValueError."""
    from kraftd.configdef.addresses import parse_host_port

    return parse_host_port(text.partition("://")[2])


def check(error_code: int, error_message: str | None) -> None:
    """Raise CommandFailure for an error in an answer, NoLeader if another controller leads or none does."""
    from kraftd.wire.error_code import ErrorCode, error_name

    if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        failure = NoLeader()
        failure.reasons = (error_message or "").split("\n")[1:]
        raise failure
    if error_code != ErrorCode.NONE:
        name = error_name(error_code)
        raise CommandFailure(f"{name}: {error_message}" if error_message else name, FAILED)
