"""A bit flips in a partition of each coordinator at one of three replicas, which is kraftd's.

That broker gives these partitions up as soon as it is to lead them, and others coordinate them. It fetches
them again once the operator has moved their directories aside.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka.admin import NewTopic

from kraftd.wire.error_code import ErrorCode
from testkit.node import Kind, kraftd_command
from testkit.process import HOST, wait_until
from tests.kafka.one_broker.coordinators_on_disk import STEPS, TOPICS, CoordinatorRequests, flip
from tests.kafka.replication.mixed import MixedCluster

pytestmark = pytest.mark.kafka

DAMAGED, STOCK, THIRD = 1, 2, 3
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
}
FILE = f"{0:020}.log"


def requests_to(cluster: MixedCluster) -> dict[int, CoordinatorRequests]:
    """For each broker. Partition 0 of each topic prefers the broker whose files are to be damaged."""
    placed = [[DAMAGED, STOCK, THIRD], [STOCK, THIRD, DAMAGED]]
    config = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
    topics = [NewTopic(topic, 2, replica_assignment=placed, config=config) for topic in TOPICS]
    for made in cluster.admin.create_topics(topics).values():
        made.result(30)
    requests = {one: CoordinatorRequests(cluster.broker(one).port, 2) for one in cluster.ids}
    requests[DAMAGED].make_topic(cluster.admin, 3)
    for one in requests.values():
        one.topic_id = requests[DAMAGED].topic_id
    for topic in TOPICS:
        requests[DAMAGED].fill(topic, 0)
    return requests


def leads(cluster: MixedCluster, broker_id: int) -> bool:
    return all(cluster.partition(topic, 0).leader == broker_id for topic in TOPICS)


def isrs(cluster: MixedCluster) -> list[set[int]]:
    return [set(cluster.partition(topic, 0).isrs) for topic in TOPICS]


def prefer(cluster: MixedCluster) -> None:
    """Let the preferred replicas lead."""
    wait_until(lambda: isrs(cluster) == [{DAMAGED, STOCK, THIRD}] * 3, "all replicas are in sync", 60)
    cluster.admin.elect_leaders(ElectionType.PREFERRED, None).result(30)


def doctor(cluster: MixedCluster) -> str:
    address = f"{HOST}:{cluster.controller.port}"
    command = kraftd_command("doctor", "--bootstrap-controller", address)
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "controller", ["kraftd", pytest.param("apache", marks=pytest.mark.thorough)], ids=str
)
def test_a_damaged_replica_is_given_up_and_fetched_again(tmp_path: Path, controller: Kind) -> None:
    kinds: dict[int, Kind] = {DAMAGED: "kraftd", STOCK: "apache", THIRD: "kraftd"}
    with MixedCluster(tmp_path, kinds, controller, settings=SETTINGS) as cluster:
        requests = requests_to(cluster)
        node = cluster.broker(DAMAGED)
        assert node.stop() == 0
        where = {topic: flip(node.data / f"{topic}-0" / FILE) for topic in TOPICS}
        node.start()
        prefer(cluster)

        wait_until(lambda: isrs(cluster) == [{STOCK, THIRD}] * 3, "the damaged replicas are given up", 60)
        wait_until(lambda: leads(cluster, STOCK), "the stock broker leads", 30)
        errors = [line for line in node.log_text().splitlines() if '"level":"error"' in line]
        for topic in TOPICS:
            assert requests[STOCK].settled(topic, 0) == (0, STEPS), topic
            key = requests[STOCK].key_of(topic, 0)
            assert requests[STOCK].write(topic, key, STEPS + 1) == 0, topic
            assert requests[DAMAGED].write(topic, key, STEPS + 1) == ErrorCode.NOT_COORDINATOR, topic
            position, offset = where[topic]
            (line,) = [one for one in errors if f'"partition":"{topic}-0"' in one]
            assert f"{FILE}, byte {position} (offset {offset})" in line
            assert "another replica is to lead the partition" in line
        told = doctor(cluster)
        assert "the log of 3 partitions is lost or damaged, so this broker has given it up" in told
        assert "its log there is lost or damaged" in told

        # The operator moves the directories aside, as the log says.
        assert node.stop() == 0
        for topic in TOPICS:
            (node.data / f"{topic}-0").rename(tmp_path / topic)
        node.start()
        prefer(cluster)
        wait_until(lambda: leads(cluster, DAMAGED), "it leads again", 30)
        for topic in TOPICS:
            assert requests[DAMAGED].settled(topic, 0)[0] == 0, topic
            key = requests[DAMAGED].key_of(topic, 0)
            assert requests[DAMAGED].write(topic, key, STEPS + 2) == 0, topic
            wait_until(lambda topic=topic: cluster.logs_are_equal(topic), f"logs of {topic} are equal", 20)  # type: ignore[misc]
        assert "lost or damaged" not in doctor(cluster)


@pytest.mark.parametrize(
    "controller", ["kraftd", pytest.param("apache", marks=pytest.mark.thorough)], ids=str
)
def test_a_partition_without_a_sound_log_has_no_leader_until_it_is_restored(
    tmp_path: Path, controller: Kind
) -> None:
    with MixedCluster(tmp_path, {DAMAGED: "kraftd", STOCK: "apache"}, controller) as cluster:
        cluster.admin.create_topics([NewTopic("u", 1, replica_assignment=[[DAMAGED]])])["u"].result(30)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce("u", b"a record")
        assert producer.flush(30) == 0
        node = cluster.broker(DAMAGED)
        assert node.stop() == 0
        path = node.data / "u-0" / FILE
        sound = path.read_bytes()
        path.write_bytes(sound[:16] + b"\xff" + sound[17:])  # a magic that no batch has
        node.start()
        cluster.wait_for_live_brokers(DAMAGED, STOCK)
        wait_until(lambda: cluster.partition("u").leader == -1, "it has no leader", 30)
        assert "on this broker, which runs, but its log there is lost or damaged" in doctor(cluster)

        assert node.stop() == 0
        assert path.read_bytes() != sound, "the damaged file stays"
        path.write_bytes(sound)
        node.start()
        wait_until(lambda: cluster.partition("u").leader == DAMAGED, "it leads again", 60)
        producer.produce("u", b"another")
        assert producer.flush(30) == 0
        assert "lost or damaged" not in doctor(cluster)
