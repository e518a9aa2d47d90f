"""Brokers fail, freeze, leave and come back: leaders and in-sync replicas change, and no record is lost."""

from __future__ import annotations

import shutil
import threading
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.metadata.features import supported_features
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.node import Broker
from tests.faults.proxy import Proxy

pytestmark = pytest.mark.kafka


def in_sync(cluster: Cluster, topic: str) -> dict[int, set[int]]:
    return {index: set(partition.isrs) for index, partition in cluster.partitions(topic).items()}


def leaders(cluster: Cluster, topic: str) -> set[int]:
    return {partition.leader for partition in cluster.partitions(topic).values()}


def wait_for_full_isr(cluster: Cluster, topic: str) -> None:
    cluster.wait_until(
        lambda: all(isr == {1, 2, 3} for isr in in_sync(cluster, topic).values()),
        f"every replica of {topic} in sync",
    )


class Stream(threading.Thread):
    """Produces numbered records with acks=all until it is stopped, and keeps the acknowledged numbers."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic, self.acknowledged, self.failures = topic, [], []
        self._stopping = threading.Event()
        servers = ",".join(broker.address for broker in cluster.brokers.values())
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})

    def run(self) -> None:
        number = 0
        while not self._stopping.wait(0.005):
            value = b"%d" % number
            self._producer.produce(self.topic, value, key=value, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: object, message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value()))
        else:
            self.failures.append(error)

    def __enter__(self) -> Stream:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()
        assert self._producer.flush(120) == 0


def read_all(cluster: Cluster, topic: str) -> list[int]:
    """Every record of the topic up to its current ends."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": f"check-{topic}"})
    found = []
    for index in cluster.partitions(topic):
        _, end = reader.get_watermark_offsets(TopicPartition(topic, index), timeout=30)
        reader.assign([TopicPartition(topic, index, 0)])
        position = 0
        for _ in range(100_000):
            if position >= end:
                break
            message = reader.poll(10)
            assert message is not None and message.error() is None, message and message.error()
            found.append(int(message.value()))
            position = message.offset() + 1
    reader.close()
    return found


def test_a_killed_broker_is_fenced_and_later_comes_back_in_sync(
    three_brokers: Cluster,
) -> None:
    cluster = three_brokers
    cluster.create_topic("survivor", partitions=6, replication_factor=3)
    assert leaders(cluster, "survivor") == {1, 2, 3}
    with Stream(cluster, "survivor") as stream:
        cluster.wait_until(lambda: len(stream.acknowledged) > 100, "records are acknowledged")
        cluster.brokers[2].kill()
        cluster.wait_for_live_brokers(1, 3)
        cluster.wait_until(lambda: leaders(cluster, "survivor") == {1, 3}, "1 and 3 lead")
        cluster.wait_until(
            lambda: all(isr == {1, 3} for isr in in_sync(cluster, "survivor").values()), "the ISRs shrank"
        )
        before = len(stream.acknowledged)
        cluster.wait_until(
            lambda: len(stream.acknowledged) > before + 100, "records are acknowledged without 2"
        )

        cluster.brokers[2].start()
        cluster.brokers[2].wait_ready()
        cluster.wait_for_live_brokers(1, 2, 3)
        wait_for_full_isr(cluster, "survivor")
    assert not stream.failures
    assert sorted(read_all(cluster, "survivor")) == sorted(stream.acknowledged)


def test_a_rolling_restart_loses_and_repeats_no_record(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("rolling", partitions=3, replication_factor=3, min_insync_replicas=2)
    with Stream(cluster, "rolling") as stream:
        for broker in (1, 2, 3):
            others = {1, 2, 3} - {broker}
            cluster.brokers[broker].stop()
            assert "from PENDING_CONTROLLED_SHUTDOWN to SHUTTING_DOWN" in cluster.brokers[broker].log_text()
            cluster.wait_until(lambda others=others: leaders(cluster, "rolling") <= others, f"{others} lead")
            cluster.brokers[broker].start()
            cluster.brokers[broker].wait_ready()
            wait_for_full_isr(cluster, "rolling")
    assert not stream.failures
    assert sorted(read_all(cluster, "rolling")) == sorted(stream.acknowledged)


def test_a_broker_restarted_within_its_session_registers_after_its_end(
    three_brokers: Cluster,
) -> None:
    cluster = three_brokers
    cluster.create_topic("inside", partitions=3, replication_factor=3)
    broker = cluster.brokers[3]
    broker.kill()
    assert register_another(cluster, broker) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    broker.start()
    broker.wait_ready()
    cluster.wait_for_live_brokers(1, 2, 3)
    wait_for_full_isr(cluster, "inside")


def register_another(cluster: Cluster, broker: Broker) -> ErrorCode:
    """The controller's answer to another incarnation of a broker."""
    request = BrokerRegistrationRequest(
        broker_id=broker.node_id,
        cluster_id=cluster.cluster_id,
        incarnation_id=uuid.uuid4().bytes,
        listeners=[Listener("PLAINTEXT", broker.host, broker.port, 0)],
        features=[Feature(name, *levels) for name, levels in supported_features().items()],
        log_dirs=(uuid.uuid4().bytes,),
    )
    with Client(cluster.controller.host, cluster.controller.port) as client:
        return ErrorCode(client.call(request, 4).error_code)


def test_a_broker_restarted_after_its_session_registers_at_once(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("after", partitions=3, replication_factor=3)
    broker = cluster.brokers[3]
    broker.kill()
    cluster.wait_for_live_brokers(1, 2)
    broker.start()
    broker.wait_ready()
    assert "DUPLICATE_BROKER_REGISTRATION" not in broker.log_text()
    cluster.wait_for_live_brokers(1, 2, 3)
    wait_for_full_isr(cluster, "after")


def test_a_frozen_broker_is_fenced_and_unfenced_with_the_same_registration(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("frozen", partitions=3, replication_factor=3)
    broker = cluster.brokers[1]
    registrations = broker.log_text().count("Successfully registered broker")
    broker.freeze()
    try:
        cluster.wait_until(lambda: cluster.live_brokers_by(2) == {2, 3}, "1 is fenced")
    finally:
        broker.thaw()
    # 1 itself does not know yet that it was fenced
    cluster.wait_until(lambda: cluster.live_brokers_by(2) == {1, 2, 3}, "1 is unfenced")
    wait_for_full_isr(cluster, "frozen")
    assert broker.log_text().count("Successfully registered broker") == registrations


def test_the_last_replica_in_sync_keeps_leading_alone_and_the_others_rejoin(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.tool("topics", "--create", "--topic", "last", "--replica-assignment", "1:2:3")
    wait_for_full_isr(cluster, "last")
    for broker in (2, 3):
        cluster.brokers[broker].kill()
    cluster.wait_until(lambda: cluster.partition("last").isrs == [1], "1 alone is in sync")
    assert cluster.partition("last").leader == 1
    for broker in (2, 3):
        cluster.brokers[broker].start()
    for broker in (2, 3):
        cluster.brokers[broker].wait_ready()
    wait_for_full_isr(cluster, "last")


def test_an_isr_whose_new_member_rebooted_meanwhile_is_refused(three_brokers: Cluster, proxy: Proxy) -> None:
    """The proxy holds the leader's real AlterPartition until its follower has registered anew, without its
    data (KIP-903). The test sends a copy first, to read the answer that the leader gets a moment later.
    """
    cluster, controller = three_brokers, three_brokers.controller
    leader, follower = cluster.brokers[1], cluster.brokers[2]
    cluster.tool("topics", "--create", "--topic", "emptied", "--replica-assignment", leader.node_id)
    cluster.wait_until(lambda: cluster.partition("emptied").leader == leader.node_id, "it is led")
    producer = Producer({"bootstrap.servers": leader.address, "acks": "all"})
    for number in range(200):
        producer.produce("emptied", b"%d" % number)
    assert producer.flush(30) == 0
    cluster.wait_until(lambda: all_in_sync(cluster), "the leader has nothing else to propose")
    held = proxy.hold((leader.node_id, controller.node_id), ApiKey.ALTER_PARTITION)
    moved = ReassignableTopic("emptied", [ReassignablePartition(0, (follower.node_id,))])
    with Client(controller.host, controller.port) as client:
        answer = client.call(AlterPartitionReassignmentsRequest(topics=[moved]), 0)
        assert answer.error_code == ErrorCode.NONE
        cluster.wait_until(lambda: held, "the leader proposes its follower")
        follower.stop()
        shutil.rmtree(follower.data / "emptied-0")
        follower.start()
        follower.wait_ready()
        cluster.wait_for_live_brokers(1, 2, 3)
        client.socket.sendall(held[0])
        version = int.from_bytes(held[0][6:8], "big")
        _, answer = parse_response(ApiKey.ALTER_PARTITION, version, client.receive_frame())
    assert answer.error_code == ErrorCode.NONE
    errors = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    assert errors == [ErrorCode.INELIGIBLE_REPLICA]
    assert cluster.partition("emptied").isrs == [leader.node_id]
    proxy.heal()
    cluster.wait_until(lambda: cluster.partition("emptied").replicas == [follower.node_id], "it has moved")
    assert read_all(cluster, "emptied") == list(range(200))


def all_in_sync(cluster: Cluster) -> bool:
    """Return whether each partition of the cluster has all its replicas in sync."""
    found = [one for topic in cluster.metadata().topics.values() for one in topic.partitions.values()]
    return all(set(one.isrs) == set(one.replicas) for one in found)
