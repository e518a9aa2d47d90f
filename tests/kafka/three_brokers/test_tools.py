"""Kafka's own administration tools against the controller, directly and through three stock brokers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from testkit.client import Client
from testkit.cluster import CONTROLLER_ID, Cluster, status_fields
from testkit.java import tools
from testkit.process import HOST

pytestmark = pytest.mark.kafka


def test_metadata_quorum_describes_the_quorum_from_the_controller_and_from_a_broker(
    three_brokers: Cluster,
) -> None:
    for run in (
        three_brokers.controller_tool("metadata-quorum", "describe", "--status"),
        three_brokers.tool("metadata-quorum", "describe", "--status"),
    ):
        status = status_fields(run.out)
        assert status["ClusterId"] == three_brokers.cluster_id
        assert status["LeaderId"] == str(CONTROLLER_ID)
        assert int(status["LeaderEpoch"]) >= 1
        assert int(status["HighWatermark"]) > 0
        voters, observers = json.loads(status["CurrentVoters"]), json.loads(status["CurrentObservers"])
        assert [voter["id"] for voter in voters] == [CONTROLLER_ID]
        assert voters[0]["endpoints"] == [f"CONTROLLER://{three_brokers.controller.address}"]
        assert sorted(observer["id"] for observer in observers) == [1, 2, 3]


def test_metadata_quorum_shows_how_far_each_broker_has_fetched(three_brokers: Cluster) -> None:
    def caught_up() -> bool:
        table = three_brokers.controller_tool("metadata-quorum", "describe", "--replication").out
        rows = [line.split() for line in table.splitlines()[1:] if line]
        roles = {int(row[0]): row[-1] for row in rows}
        assert roles == {CONTROLLER_ID: "Leader", 1: "Observer", 2: "Observer", 3: "Observer"}
        return all(int(row[3]) <= 1 for row in rows)

    three_brokers.wait_until(caught_up, "every broker within a record of the leader")


def test_cluster_tool_names_the_cluster_and_its_endpoints(three_brokers: Cluster) -> None:
    cluster = three_brokers
    for run in (cluster.tool("cluster", "cluster-id"), cluster.controller_tool("cluster", "cluster-id")):
        assert cluster.cluster_id in run.out
    listed = cluster.tool("cluster", "list-endpoints").out
    assert all(str(broker.port) in listed for broker in cluster.brokers.values())
    assert str(cluster.controller.port) in cluster.controller_tool("cluster", "list-endpoints").out


def test_broker_api_versions_reads_every_brokers_list(three_brokers: Cluster) -> None:
    listed = three_brokers.tool("broker-api-versions").out
    for broker in three_brokers.brokers.values():
        assert f"{broker.address} (id: {broker.node_id} rack: null isFenced: false)" in listed
    assert "ERROR" not in listed


def test_features_tool_shows_and_changes_finalized_levels(three_brokers: Cluster) -> None:
    cluster = three_brokers

    def level(feature: str) -> str:
        lines = cluster.tool("features", "describe").out.splitlines()
        row = next(line for line in lines if line.startswith(f"Feature: {feature} "))
        return row.split("FinalizedVersionLevel: ")[1].split()[0]

    assert level("metadata.version") == "4.3-IV0"
    assert level("group.version") == "1"
    assert level("metadata.version") in cluster.controller_tool("features", "describe").out
    # Kafka's controllers refuse the first: the format of records changed in 4.3.
    both = ("--feature", "metadata.version=29", "--feature", "streams.version=0")
    cluster.tool("features", "downgrade", *both)
    cluster.wait_until(lambda: level("streams.version") == "0", "disabled")
    assert level("metadata.version") == "4.2-IV1"
    cluster.tool("topics", "--create", "--topic", "at-4.2", "--replication-factor", "3")
    both = ("--feature", "metadata.version=30", "--feature", "streams.version=1")
    cluster.tool("features", "upgrade", *both)
    cluster.wait_until(lambda: level("streams.version") == "1", "enabled")
    assert level("metadata.version") == "4.3-IV0"
    refused = cluster.try_tool("features", "upgrade", "--feature", "group.version=99")
    assert refused.code == 1
    assert "group.version" in refused.out + refused.err


def test_reassign_partitions_moves_replicas_and_can_be_verified(
    three_brokers: Cluster, tmp_path: Path
) -> None:
    cluster = three_brokers
    cluster.tool("topics", "--create", "--topic", "moved", "--replica-assignment", "1:2,2:1")
    plan = tmp_path / "plan.json"
    expected = {0: [3, 1], 1: [2, 3]}
    plan.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": "moved", "partition": index, "replicas": replicas}
                    for index, replicas in expected.items()
                ],
            }
        )
    )
    cluster.tool("reassign", "--execute", "--reassignment-json-file", plan)

    def moved() -> bool:
        now = cluster.partitions("moved")
        return all(
            now[i].replicas == expected[i] and sorted(now[i].isrs) == sorted(expected[i]) for i in expected
        )

    cluster.wait_until(moved, "the replicas are where they should be")
    assert "is completed" in cluster.tool("reassign", "--verify", "--reassignment-json-file", plan).out
    assert "No partition reassignments found" in cluster.tool("reassign", "--list").out


def test_a_reassignment_that_cannot_finish_is_listed_and_can_be_cancelled(
    three_brokers: Cluster, tmp_path: Path
) -> None:
    cluster = three_brokers
    cluster.tool("topics", "--create", "--topic", "stuck", "--replica-assignment", "1:2")
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"stuck","partition":0,"replicas":[1,3]}]}')
    cluster.brokers[3].kill()
    cluster.wait_for_live_brokers(1, 2)
    # The tool refuses to name a broker that is down, so the test asks the controller itself.
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("stuck", [ReassignablePartition(0, (1, 3))])]
    )
    with Client(HOST, cluster.controller.port) as client:
        answer = client.call(request, version=0)
    assert [partition.error_code for partition in answer.responses[0].partitions] == [0]

    assert "stuck-0: replicas: 1,3,2. adding: 3. removing: 2." in cluster.tool("reassign", "--list").out
    cluster.tool("reassign", "--cancel", "--preserve-throttles", "--reassignment-json-file", plan)
    cluster.wait_until(lambda: cluster.partition("stuck").replicas == [1, 2], "the old replicas are back")


def test_leader_election_tool_brings_back_the_preferred_leader(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.tool("topics", "--create", "--topic", "preferred", "--replica-assignment", "2:1:3")
    cluster.brokers[2].stop()
    cluster.wait_until(lambda: cluster.partition("preferred").leader in (1, 3), "another leads")
    cluster.brokers[2].start()
    cluster.brokers[2].wait_ready()
    cluster.wait_until(lambda: sorted(cluster.partition("preferred").isrs) == [1, 2, 3], "2 is in sync again")
    run = cluster.tool(
        "leader-election", "--election-type", "preferred", "--topic", "preferred", "--partition", 0
    )
    assert (
        "Successfully completed leader election (PREFERRED)" in run.out
        or "Valid replica already elected" in run.out
    )
    cluster.wait_until(lambda: cluster.partition("preferred").leader == 2, "2 leads again")


def test_configs_tool_describes_the_controller_itself(three_brokers: Cluster) -> None:
    described = three_brokers.controller_tool(
        "configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", CONTROLLER_ID
    ).out
    assert f"node.id={CONTROLLER_ID} " in described


def test_configs_tool_sets_the_level_of_the_controllers_log(three_brokers: Cluster) -> None:
    logger = ("configs", "--entity-type", "broker-loggers", "--entity-name", CONTROLLER_ID)
    assert "root=INFO " in three_brokers.controller_tool(*logger, "--describe").out
    three_brokers.controller_tool(*logger, "--alter", "--add-config", "root=DEBUG")
    assert "root=DEBUG " in three_brokers.controller_tool(*logger, "--describe").out
    three_brokers.controller_tool(*logger, "--alter", "--add-config", "root=INFO")


def test_storage_tool_describes_the_controllers_directory(three_brokers: Cluster) -> None:
    run = tools().run("storage", "info", "-c", three_brokers.controller.properties_file)
    assert run.code == 0, run.out + run.err
    assert f"cluster.id={three_brokers.cluster_id}" in run.out
    assert f"node.id={CONTROLLER_ID}" in run.out


def test_log_dirs_tool_lists_every_brokers_directory(three_brokers: Cluster) -> None:
    out = three_brokers.tool("log-dirs", "--describe").out
    described = json.loads(out[out.index("{") :])
    assert sorted(broker["broker"] for broker in described["brokers"]) == [1, 2, 3]
    assert all(
        directory["error"] is None for broker in described["brokers"] for directory in broker["logDirs"]
    )
