"""``kraftd quorum describe``: the leader, the voters, and which replicas lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.cluster_options import ClusterGroup, bootstrap_option, command_config_option, run
from kraftd.cli.quorum.leader import Quorum, ask_leader
from kraftd.cli.values import SECONDS

if TYPE_CHECKING:
    from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState


@click.group(cls=ClusterGroup)
def quorum() -> None:
    """Describe, change and recover the quorum of controllers."""


@quorum.command()
@command_config_option
@bootstrap_option("Controllers of the quorum, or brokers. The first that answers names the leader.")
@click.option("--status", is_flag=True, expose_value=False, help="Print a line for each fact (the default).")
@click.option("--replication", is_flag=True, help="Print a line for each replica, with its lag.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=10.0,
    show_default=True,
    help="Seconds to wait for an answer.",
)
def describe(bootstrap: str, replication: bool, as_json: bool, timeout_s: float) -> None:
    """Describe the quorum as its leader sees it.

    If there is no leader, each kraftd controller that answers says which of its peers do not help, why, and
    what to do.

    On standard error the command prints what a kraftd leader reports beside: nodes that it refused within the
    last minute, and replicas that have applied metadata which the quorum has lost. It also reports ids under
    which several nodes run, and advertised addresses that do not lead to their nodes.
    """
    import json

    found = run(ask_leader(bootstrap, timeout_s))
    if as_json:
        described = {**dict(status(found)), "Replicas": rows(found.partition), "Refused": list(found.refused)}
        click.echo(json.dumps(described))
        return
    if replication:
        show_replication(found.partition)
    else:
        for name, value in status(found):
            shown = json.dumps(value) if isinstance(value, list) else value
            click.echo(f"{name + ':':<24}{shown}")
    for line in found.refused:
        click.echo(line, err=True)


def leader_of(partition: PartitionData) -> ReplicaState | None:
    return next(
        (voter for voter in partition.current_voters if voter.replica_id == partition.leader_id), None
    )


def status(found: Quorum) -> Iterator[tuple[str, object]]:
    """The lines of Kafka's own tool, with its names and its values."""
    partition = found.partition
    yield "ClusterId", found.cluster_id
    yield "LeaderId", partition.leader_id
    yield "LeaderEpoch", partition.leader_epoch
    yield "HighWatermark", partition.high_watermark
    yield "MaxFollowerLag", max((lag_of(partition, one) for one in partition.current_voters), default=0)
    yield "MaxFollowerLagTimeMs", lag_ms(partition)
    yield "CurrentVoters", [as_node(found, replica) for replica in partition.current_voters]
    yield "CurrentObservers", [as_node(found, replica) for replica in partition.observers]


def lag_ms(partition: PartitionData) -> int:
    """For how long the voter that is furthest behind has not been level; -1 if it never was."""
    leader = leader_of(partition)
    furthest = min(partition.current_voters, key=lambda one: one.log_end_offset, default=None)
    if leader is None or furthest is None or furthest is leader:
        return 0
    level_ms = leader.last_caught_up_timestamp, furthest.last_caught_up_timestamp
    return level_ms[0] - level_ms[1] if min(level_ms) >= 0 else -1


def lag_of(partition: PartitionData, replica: ReplicaState) -> int:
    """By how many records a replica is behind the leader."""
    leader = leader_of(partition)
    return max(0, leader.log_end_offset - replica.log_end_offset) if leader is not None else 0


def as_node(found: Quorum, replica: ReplicaState) -> dict[str, object]:
    """A replica's ids and, if the leader knows them, its addresses.

    A voter of a static quorum has no directory id.
    """
    from kraftd.types import uuid_text

    node: dict[str, object] = {"id": replica.replica_id}
    if any(replica.replica_directory_id):
        node["directoryId"] = uuid_text(replica.replica_directory_id)
    if endpoints := found.endpoints.get(replica.replica_id):
        node["endpoints"] = endpoints
    return node


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
    from kraftd.cli.tables import print_table

    found = rows(partition)
    print_table(found[0] if found else ("NodeId",), (list(map(str, row.values())) for row in found))
