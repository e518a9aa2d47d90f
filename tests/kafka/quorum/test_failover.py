"""Three controllers and a stock broker: leaders fail, leave and come back; nothing acknowledged is lost."""

from __future__ import annotations

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import status_fields
from testkit.process import HOST
from testkit.quorum import DESCRIBE, Quorum
from tests.kafka.quorum.writers import writing

pytestmark = pytest.mark.kafka

CONTROLLERS = 2  # the endpoint type of controllers in DescribeCluster (KIP-919)


def test_a_quorum_elects_one_leader_and_all_voters_catch_up(healed: Quorum) -> None:
    described = healed.described()
    assert described is not None
    assert [voter.replica_id for voter in described.current_voters] == [100, 101, 102]
    healed.wait_for_voters(100, 101, 102)
    status = healed.quorum_status()
    after = healed.described()
    assert after is not None
    # Where the disk stalls for seconds, another one is elected while the tool starts.
    assert status["LeaderId"] in {str(described.leader_id), str(after.leader_id)}
    assert status["ClusterId"] == healed.cluster_id


def test_every_controller_names_the_leader_and_only_the_leader_decides(healed: Quorum) -> None:
    healed.wait_for_voters(100, 101, 102)
    leader = healed.wait_for_leader()
    topic = CreateTopicsRequest([CreatableTopic("decided-once", 1, 1)], timeout_ms=5000)
    for node_id in sorted(healed.controllers, key=lambda one: one == leader):
        with Client(HOST, healed.controllers[node_id].port) as client:
            cluster = client.call(DescribeClusterRequest(endpoint_type=CONTROLLERS), 2)
            assert cluster.controller_id == leader
            assert {node.broker_id for node in cluster.brokers} == {100, 101, 102}
            versions = client.call(ApiVersionsRequest("test", "1"), 4)
            levels = {one.name: one.max_version_level for one in versions.finalized_features}
            assert versions.finalized_features_epoch > 0
            assert (levels["metadata.version"], levels["kraft.version"]) == (30, 1)
            is_leader = node_id == leader
            quorum = client.call(DESCRIBE, 2).topics[0].partitions[0]
            assert quorum.error_code == (0 if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER)
            created = client.call(topic, 7).topics[0]
            assert created.error_code == (0 if is_leader else ErrorCode.NOT_CONTROLLER)


def test_kills_of_leaders_lose_nothing_that_was_acknowledged(healed: Quorum) -> None:
    with writing(healed, "killed") as writer:
        for _ in range(3):
            writer.wait_for_more()
            epoch, leader = healed.epoch(), healed.controller
            leader.kill()
            assert healed.wait_for_leader(after_epoch=epoch) != leader.node_id
            writer.wait_for_more()
            healed.start_controllers(leader.node_id)
            healed.wait_for_voters(100, 101, 102)


def test_an_otherwise_idle_broker_finds_the_leader_after_a_frozen_one(
    healed: Quorum,
) -> None:
    """The old leader answers again on the same connection, and must refuse as it no longer leads."""

    def leader_by_broker() -> str:
        return status_fields(healed.tool("metadata-quorum", "describe", "--status").out)["LeaderId"]

    for _ in range(2):
        assert leader_by_broker() == str(healed.leader())
        epoch, leader = healed.epoch(), healed.controller
        leader.freeze()
        healed.wait_for_leader(after_epoch=epoch)
        leader.thaw()
        healed.wait_for_voters(100, 101, 102)
    assert leader_by_broker() == str(healed.leader())


def test_a_leader_that_is_stopped_hands_over(healed: Quorum) -> None:
    with writing(healed, "stopped") as writer:
        writer.wait_for_more()
        epoch, leader = healed.epoch(), healed.controller
        assert leader.stop() == (0 if leader.kind == "kraftd" else 143)
        assert healed.wait_for_leader(after_epoch=epoch) != leader.node_id
        writer.wait_for_more()


def test_a_rolling_restart_does_not_disturb_clients(healed: Quorum) -> None:
    with writing(healed, "rolled") as writer:
        for controller in healed.controllers.values():
            controller.stop()
            healed.start_controllers(controller.node_id)
            healed.wait_for_voters(100, 101, 102)
            writer.wait_for_more()


def test_all_three_controllers_come_back_from_kills_with_all_topics(healed: Quorum) -> None:
    with writing(healed, "all") as writer:
        writer.wait_for_more()
        for controller in healed.controllers.values():
            controller.kill()
        healed.start_controllers()
        writer.wait_for_more()


def test_every_controller_registers_and_the_broker_tool_sees_them(healed: Quorum) -> None:
    def registered() -> bool:
        out = healed.controller_tool("cluster", "list-endpoints").out
        return all(
            one.address.replace(":", " ") in " ".join(out.split()) for one in healed.controllers.values()
        )

    healed.wait_until(registered, "all three controllers are registered")


def test_the_logs_are_equal_at_the_end(healed: Quorum) -> None:
    healed.stop_all()
    assert healed.assert_equal_logs() > 100
