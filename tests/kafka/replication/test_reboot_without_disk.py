"""The race that KIP-903 was written for, between brokers of both kinds.

It takes a minute: `make replication` plays it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches, records
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until
from tests.faults.proxy import Proxy
from tests.kafka.replication.mixed import TOPIC, MixedCluster

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

LEADER, FOLLOWER = 1, 2
RECORDS = 200
SESSION_TIMEOUT_MS = 6000  # a broker that starts again registers after it


@pytest.fixture
def network() -> Iterator[Proxy]:
    network = Proxy()
    yield network
    network.close()


@pytest.mark.parametrize("controller", ["kraftd", "apache"])
@pytest.mark.parametrize(("leader", "follower"), [("kraftd", "apache"), ("apache", "kraftd")])
def test_a_follower_that_lost_its_log_joins_by_no_delayed_request__kip903(
    tmp_path: Path, network: Proxy, leader: Kind, follower: Kind, controller: Kind
) -> None:
    kinds = {LEADER: leader, FOLLOWER: follower}
    with MixedCluster(
        tmp_path, kinds, controller, network=network, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as made:
        play(made, network)  # type: ignore[arg-type]


def play(cluster: MixedCluster, network: Proxy) -> None:
    cluster.admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[LEADER]])])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": cluster.broker(LEADER).address, "acks": "all", "log_level": 0})
    write(producer, 0)
    assert producer.flush(30) == 0

    # The follower catches up, and the leader's request to add it is delayed on its way.
    link = LEADER, cluster.controller.node_id
    held = network.hold(link, ApiKey.ALTER_PARTITION, resets=True)
    move(cluster, LEADER, FOLLOWER)
    wait_until(lambda: held, "the leader proposes its follower", 30)
    assert cluster.log(FOLLOWER, 0) == cluster.log(LEADER, 0)
    write(producer, RECORDS)

    # Meanwhile the follower comes back without the partition's log. Its directory has the same id: a new one
    # would make a new partition epoch, which alone would refuse the request.
    broker = cluster.broker(FOLLOWER)
    broker.stop()
    shutil.rmtree(broker.data / f"{TOPIC}-0")
    wait_until(lambda: cluster.live_brokers() == {LEADER}, "it is fenced", 30)
    broker.start()
    cluster.wait_for_live_brokers(LEADER, FOLLOWER)

    # The first request arrives.
    with Client(HOST, cluster.controller.port) as client:
        client.call(ApiVersionsRequest("test", "1"), 4)  # so the network takes it for none of the brokers
        client.socket.sendall(held[0])
        version = int.from_bytes(held[0][6:8], "big")
        _, answer = parse_response(ApiKey.ALTER_PARTITION, version, client.receive_frame())
    errors = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    assert (answer.error_code, errors) == (ErrorCode.NONE, [ErrorCode.INELIGIBLE_REPLICA])
    assert cluster.partition(TOPIC).isrs == [LEADER]
    network.heal()

    # It joins with all records, and leads alone at the end.
    assert producer.flush(30) == 0
    wait_until(lambda: sorted(cluster.partition(TOPIC).isrs) == [LEADER, FOLLOWER], "it has joined", 60)
    wait_until(lambda: cluster.log(FOLLOWER, 0) == cluster.log(LEADER, 0), "the logs are equal", 30)
    move(cluster, FOLLOWER)
    wait_until(lambda: cluster.partition(TOPIC).leader == FOLLOWER, "it leads alone", 60)
    kept = [
        bytes(one.value or b"") for batch in iter_batches(cluster.log(FOLLOWER, 0)) for one in records(batch)
    ]
    assert kept == [b"%d" % number for number in range(2 * RECORDS)]


def write(producer: Producer, first: int) -> None:
    for number in range(first, first + RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    producer.poll(0)


def move(cluster: MixedCluster, *replicas: int) -> None:
    moved = ReassignableTopic(TOPIC, [ReassignablePartition(0, replicas)])
    with Client(HOST, cluster.controller.port) as client:
        answer = client.call(AlterPartitionReassignmentsRequest(topics=[moved]), 0)
    assert not answer.error_code, answer
