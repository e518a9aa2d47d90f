"""Finding the leader of a quorum, and going on for as long as the user is willing to wait for one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from kraftd.cli.failures import FAILED, UNREACHABLE, CommandFailure

if TYPE_CHECKING:
    from kraftd.cli.client import Client
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.messages.describe_quorum_response import PartitionData

CONTROLLERS = 2  # DescribeCluster's type of endpoint (KIP-919)
POLL_S = 0.1
TRIES = 4  # of the user's time one controller gets a part: another may lead once one is found to be frozen


class Quorum(NamedTuple):
    """What the leader says: of the quorum, where it is itself, and where each voter is by its id."""

    cluster_id: str
    partition: PartitionData
    address: tuple[str, int]
    endpoints: Mapping[int, list[str]]


class NoLeader(CommandFailure):
    """Somebody answers, and nobody leads now."""

    def __init__(self, text: str = "The quorum has no leader now; try again in a moment.") -> None:
        super().__init__(text, FAILED)


def ask_leader(bootstrap: str, timeout_s: float) -> Quorum:
    """What the leader says, as soon as there is one.

    Raises CommandFailure at once when nobody listens, NoAnswer or NoLeader when nobody answers, or leads, in
    time.
    """
    from kraftd.cli.client import NoAnswer

    deadline_s = time.monotonic() + timeout_s
    addresses = parse_addresses(bootstrap)
    while True:
        try:
            return _ask_once(addresses, timeout_s / TRIES)
        except (NoLeader, NoAnswer):
            if time.monotonic() + POLL_S > deadline_s:
                raise
        time.sleep(POLL_S)


def parse_addresses(bootstrap: str) -> list[tuple[str, int]]:
    from kraftd.configdef.addresses import parse_host_port

    addresses = []
    for address in bootstrap.split(","):
        try:
            addresses.append(parse_host_port(address.strip()))
        except ValueError as error:
            raise click.BadParameter(f"{address}: {error}", param_hint="--bootstrap") from None
    return addresses


def _ask_once(addresses: list[tuple[str, int]], timeout_s: float) -> Quorum:
    """Ask one after the other who leads, until that one can be asked itself."""
    from kraftd.cli.client import Client, NoAnswer

    failures: list[CommandFailure] = []
    for address in addresses:
        try:
            with Client(*address, timeout_s) as client:
                try:
                    return describe_quorum(client, address)
                except NoLeader:
                    leader = _who_leads(client)
            try:
                with Client(*leader, timeout_s) as client:
                    return describe_quorum(client, leader)
            except CommandFailure as failure:
                if failure.code != UNREACHABLE:
                    raise
                raise NoLeader(f"{failure}\n{NoLeader()}") from None  # it led until a moment ago
        except CommandFailure as failure:
            if failure.code != UNREACHABLE and not isinstance(failure, NoLeader):
                raise
            failures.append(failure)
    text = "\n".join(dict.fromkeys(map(str, failures)))
    for kind in (NoLeader, NoAnswer):
        if any(isinstance(failure, kind) for failure in failures):
            raise NoLeader(text) if kind is NoLeader else NoAnswer(text, UNREACHABLE)
    raise CommandFailure(text, UNREACHABLE)


def _who_leads(client: Client) -> tuple[str, int]:
    """Where the active controller is, as this one knows. Raises NoLeader if it does not."""
    from kraftd.cli.client import NoAnswer

    try:
        cluster = _describe_cluster(client)
    except NoAnswer:
        raise NoLeader from None  # a controller that has not heard of a leader yet lets this wait
    leader = next((node for node in cluster.brokers if node.broker_id == cluster.controller_id), None)
    if leader is None:
        raise NoLeader
    return leader.host, leader.port


def _describe_cluster(client: Client) -> DescribeClusterResponse:
    from kraftd.messages.describe_cluster_request import DescribeClusterRequest
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.wire.api import ApiKey

    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    cluster = client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
    check(cluster.error_code, cluster.error_message)
    return cluster


def describe_quorum(client: Client, address: tuple[str, int]) -> Quorum:
    """What the controller at that address says as the leader. Raises NoLeader if it is none."""
    from kraftd.messages import describe_quorum_request as m
    from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
    from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
    from kraftd.wire.api import ApiKey

    topic = m.TopicData(METADATA_TOPIC, [m.PartitionData(METADATA_PARTITION)])
    answer = client.ask(ApiKey.DESCRIBE_QUORUM, m.DescribeQuorumRequest([topic]), DescribeQuorumResponse)
    check(answer.error_code, answer.error_message)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code, partition.error_message)
    endpoints = {
        node.node_id: [endpoint_text(one.name, one.host, one.port) for one in node.listeners]
        for node in answer.nodes
    }
    return Quorum(_describe_cluster(client).cluster_id, partition, address, endpoints)


def endpoint_text(listener: str, host: str, port: int) -> str:
    """An endpoint as it stands in `listeners`, and as Kafka's tools show it."""
    return f"{listener}://[{host}]:{port}" if ":" in host else f"{listener}://{host}:{port}"


def check(error_code: int, error_message: str | None) -> None:
    """Raise CommandFailure for an answer that is an error, NoLeader where another one leads or none."""
    from kraftd.wire.error_code import ErrorCode, error_name

    if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise NoLeader
    if error_code != ErrorCode.NONE:
        name = error_name(error_code)
        raise CommandFailure(f"{name}: {error_message}" if error_message else name, FAILED)
