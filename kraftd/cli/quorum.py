"""``kraftd quorum describe``: who leads, who votes, who is behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.failures import FAILED, UNREACHABLE, CommandFailure

if TYPE_CHECKING:
    from kraftd.cli.client import Client
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState

WIDE = 1000
CONTROLLERS = 2  # DescribeCluster's type of endpoint (KIP-919)


@click.group()
def quorum() -> None:
    """The controllers' quorum."""


@quorum.command()
@click.option(
    "--bootstrap",
    required=True,
    metavar="HOST:PORT,...",
    help="Controllers to ask, the first that answers is asked who leads.",
)
@click.option("--replication", is_flag=True, help="A line for each replica, with how far behind it is.")
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON object.")
@click.option(
    "--timeout", "timeout_s", default=10.0, show_default=True, help="Seconds to wait for an answer."
)
def describe(bootstrap: str, replication: bool, as_json: bool, timeout_s: float) -> None:
    """Describe the quorum as its leader sees it."""
    cluster, partition = ask_leader(bootstrap, timeout_s)
    if as_json:
        import json

        click.echo(json.dumps(as_object(cluster, partition)))
    elif replication:
        show_replication(partition)
    else:
        for name, value in status(cluster, partition):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name + ':':<24}{shown}")


def ask_leader(bootstrap: str, timeout_s: float) -> tuple[DescribeClusterResponse, PartitionData]:
    """What the leader says. Raises CommandFailure when there is none, or nobody answers."""
    from kraftd.cli.client import Client
    from kraftd.configdef.addresses import parse_host_port
    from kraftd.messages.describe_cluster_request import DescribeClusterRequest
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse
    from kraftd.wire.api import ApiKey

    failures = []
    for address in bootstrap.split(","):
        try:
            host, port = parse_host_port(address.strip())
        except ValueError as error:
            raise click.BadParameter(f"{address}: {error}", param_hint="--bootstrap") from None
        try:
            with Client(host, port, timeout_s) as client:
                request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
                cluster = client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
                check(cluster.error_code, cluster.error_message)
                leader = next(
                    (node for node in cluster.brokers if node.broker_id == cluster.controller_id), None
                )
                if leader is None or f"{leader.host}:{leader.port}" == client.address:
                    return cluster, describe_quorum(client)
            with Client(leader.host, leader.port, timeout_s) as client:
                return cluster, describe_quorum(client)
        except CommandFailure as failure:
            if failure.code != UNREACHABLE:
                raise
            failures.append(str(failure))
    raise CommandFailure("\n".join(failures), UNREACHABLE)


def describe_quorum(client: Client) -> PartitionData:
    from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
    from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
    from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
    from kraftd.wire.api import ApiKey

    topic = TopicData(METADATA_TOPIC, [PartitionData(METADATA_PARTITION)])
    answer = client.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest([topic]), DescribeQuorumResponse)
    check(answer.error_code, answer.error_message)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code, partition.error_message)
    return partition


def check(error_code: int, error_message: str | None) -> None:
    """Raise CommandFailure for an answer that is an error."""
    from kraftd.wire.error_code import ErrorCode

    if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise CommandFailure("The quorum has no leader now; try again in a moment.", FAILED)
    if error_code != ErrorCode.NONE:
        name = next((code.name for code in ErrorCode if code == error_code), f"error {error_code}")
        raise CommandFailure(f"{name}: {error_message}" if error_message else name, FAILED)


def leader_of(partition: PartitionData) -> ReplicaState | None:
    return next(
        (voter for voter in partition.current_voters if voter.replica_id == partition.leader_id), None
    )


def status(cluster: DescribeClusterResponse, partition: PartitionData) -> Iterator[tuple[str, object]]:
    """The lines of Kafka's own tool, with its names."""
    leader = leader_of(partition)
    behind = [lag_of(partition, replica) for replica in partition.current_voters]
    behind_ms = [
        leader.last_caught_up_timestamp - replica.last_caught_up_timestamp
        for replica in partition.current_voters
        if leader is not None and replica.last_caught_up_timestamp >= 0
    ]
    yield "ClusterId", cluster.cluster_id
    yield "LeaderId", partition.leader_id
    yield "LeaderEpoch", partition.leader_epoch
    yield "HighWatermark", partition.high_watermark
    yield "MaxFollowerLag", max(behind, default=0)
    yield "MaxFollowerLagTimeMs", max(behind_ms, default=0)
    yield "CurrentVoters", [replica_name(replica) for replica in partition.current_voters]
    yield "CurrentObservers", [replica_name(replica) for replica in partition.observers]


def lag_of(partition: PartitionData, replica: ReplicaState) -> int:
    """By how many records a replica is behind the leader."""
    leader = leader_of(partition)
    return max(0, leader.log_end_offset - replica.log_end_offset) if leader is not None else 0


def replica_name(replica: ReplicaState) -> str:
    from kraftd.types import uuid_text

    directory = replica.replica_directory_id
    return f"{replica.replica_id}:{uuid_text(directory)}" if any(directory) else str(replica.replica_id)


def rows(partition: PartitionData) -> list[dict[str, Any]]:
    """One replica each: voters first, the leader before them."""
    from kraftd.types import uuid_text

    found = []
    for role, replicas in (("Follower", partition.current_voters), ("Observer", partition.observers)):
        for replica in replicas:
            is_leader = role == "Follower" and replica.replica_id == partition.leader_id
            found.append(
                {
                    "NodeId": replica.replica_id,
                    "DirectoryId": uuid_text(replica.replica_directory_id),
                    "LogEndOffset": replica.log_end_offset,
                    "Lag": lag_of(partition, replica),
                    "LastFetchTimestamp": replica.last_fetch_timestamp,
                    "LastCaughtUpTimestamp": replica.last_caught_up_timestamp,
                    "Status": "Leader" if is_leader else role,
                }
            )
    return sorted(found, key=lambda row: ("Leader", "Follower", "Observer").index(row["Status"]))


def show_replication(partition: PartitionData) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    found = rows(partition)
    for name in found[0] if found else ("NodeId",):
        table.add_column(name, no_wrap=True)
    for row in found:
        table.add_row(*map(str, row.values()))
    # A script that reads the lines gets them whole, however narrow a terminal would be.
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    console.print(table)


def as_object(cluster: DescribeClusterResponse, partition: PartitionData) -> dict[str, Any]:
    return {**dict(status(cluster, partition)), "Replicas": rows(partition)}
