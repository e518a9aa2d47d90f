"""Metrics of voters of both kinds in one quorum: followers of one leader agree, and so do leaders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.node import Kind
from testkit.process import free_port, wait_until
from testkit.quorum import Quorum
from tests.kafka.jmx import Attribute, read_jmx
from tests.metrics.scrape import Scrape

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]
KINDS: dict[int, Kind] = {100: "kraftd", 101: "kraftd", 102: "apache"}
RAFT, CONTROLLER = "kafka_server_raft_metrics_", "kafka_controller_KafkaController_"
SAME_OF_FOLLOWERS = (
    *(
        RAFT + name
        for name in (
            "current_leader",
            "current_epoch",
            "high_watermark",
            "log_end_offset",
            "log_end_epoch",
            "number_of_voters",
            "number_unknown_voter_connections",
        )
    ),
    *(
        CONTROLLER + name
        for name in (
            "ActiveControllerCount",
            "FencedBrokerCount",
            "ActiveBrokerCount",
            "GlobalTopicCount",
            "GlobalPartitionCount",
            "OfflinePartitionsCount",
            "PreferredReplicaImbalanceCount",
            "MetadataErrorCount",
            "LastAppliedRecordOffset",
            "LastCommittedRecordOffset",
        )
    ),
    "kafka_server_MetadataLoader_CurrentMetadataVersion",
    "kafka_server_MetadataLoader_CurrentControllerId",
    "kafka_log_Log_LogEndOffset",
)
OF_LEADERS = (RAFT + "number_of_observers", RAFT + "uncommitted_voter_change")


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    # Without these records an idle quorum writes nothing, so its nodes can be read one after the other.
    quiet = {"metadata.max.idle.interval.ms": 0}
    with Quorum(tmp_path_factory.mktemp("three"), KINDS, controller_properties=quiet) as three:
        for controller in three.controllers.values():
            if controller.kind == "kraftd":
                controller.properties["kraftd.metrics.listener"] = f"127.0.0.1:{free_port()}"
                controller.write_properties()
        three.start_controllers()
        three.start_brokers(1)
        three.wait_for_voters(*KINDS)
        three.create_topic("one", partitions=3, replication_factor=1)
        yield three


def scrape(quorum: Quorum, node_id: int) -> Scrape:
    _, _, port = str(quorum.controllers[node_id].properties["kraftd.metrics.listener"]).rpartition(":")
    return Scrape(int(port))


def jmx(quorum: Quorum, node_id: int) -> dict[str, Attribute]:
    return {
        one.name: one
        for one in read_jmx(quorum.controllers[node_id].pid)
        if not one.labels or "topic" in dict(one.labels)
    }


def state(found: Scrape) -> str:
    [(labels, _)] = [one for one in found.samples(RAFT + "current_state") if one[1]]
    return dict(labels)["state"]


def test_followers_of_one_leader_have_equal_metrics_and_none_of_a_leader(quorum: Quorum) -> None:
    quorum.make_lead(100)
    differences: list[str] = []

    def same() -> bool:
        kafka, ours = jmx(quorum, 102), scrape(quorum, 101)
        differences[:] = []
        for name in SAME_OF_FOLLOWERS:
            one = kafka[name]
            if ours.find(name, one.labels) != one.value:
                differences.append(f"{name}: Kafka {one.text}, kraftd {ours.find(name, one.labels)}")
        return not differences

    try:
        wait_until(same, "both have the same metrics", 30, poll_s=0.5)
    except TimeoutError:
        raise AssertionError("\n".join(differences)) from None
    kafka, follower, leader = jmx(quorum, 102), scrape(quorum, 101), scrape(quorum, 100)
    assert (kafka[RAFT + "current_state"].text, state(follower), state(leader)) == (
        "follower",
        "follower",
        "leader",
    )
    for name in OF_LEADERS:
        assert name not in kafka and not list(follower.samples(name)) and list(leader.samples(name))
    assert leader.value(CONTROLLER + "ActiveControllerCount") == 1
    # Within the last half minute, the leader may have followed another: its metrics still show that.
    assert min(one.value(RAFT + "fetch_records_rate") for one in (follower, leader)) >= 0
    assert leader.value(RAFT + "high_watermark") == follower.value(RAFT + "high_watermark")


def test_leaders_of_either_kind_have_equal_metrics_of_the_quorum(quorum: Quorum) -> None:
    names = (
        *OF_LEADERS,
        RAFT + "number_of_voters",
        CONTROLLER + "ActiveControllerCount",
        CONTROLLER + "ActiveBrokerCount",
    )
    quorum.make_lead(100)
    quorum.wait_for_voters(*KINDS)

    def observed() -> bool:
        return scrape(quorum, 100).value(RAFT + "number_of_observers") == 1  # the broker

    wait_until(observed, "the broker is an observer")
    ours = {name: scrape(quorum, 100).value(name) for name in names}
    quorum.make_lead(102)
    quorum.wait_for_voters(*KINDS)
    kafkas: dict[str, float] = {}

    def same() -> bool:
        kafka = jmx(quorum, 102)
        kafkas.update({name: kafka[name].value for name in names})
        return kafkas == ours

    wait_until(same, f"Kafka has {ours}", 60, poll_s=0.5)
    for node_id in (100, 101):
        assert state(scrape(quorum, node_id)) == "follower"
        assert scrape(quorum, node_id).value(RAFT + "current_leader") == 102
