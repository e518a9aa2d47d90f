"""What operators do with Kafka's tools to a cluster of stock and kraftd brokers (docs/operations/brokers.md).

It takes minutes: `make replication` plays it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from testkit.process import wait_until
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.thorough,
]

FIRST, STOCK, THIRD = 1, 2, 3
RECORD_BYTES, RECORDS = 1_000, 3_000  # in each partition
THROTTLE_BYTES = 500_000  # a second


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    cluster = MixedCluster(tmp_path, {FIRST: "kraftd", STOCK: "apache", THIRD: "kraftd"})
    with cluster:
        yield cluster


def write(cluster: MixedCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, b"%06d" % number + bytes(RECORD_BYTES), partition=partition)
    assert producer.flush(60) == 0


def reassign(cluster: MixedCluster, replicas: list[list[int]], *arguments: object) -> None:
    """Move the partitions with Kafka's tool, until its --verify finds that all is done."""
    rows = [{"topic": TOPIC, "partition": n, "replicas": each} for n, each in enumerate(replicas)]
    plan = cluster.home / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    cluster.tool("reassign", "--reassignment-json-file", plan, "--execute", *arguments)

    def is_done() -> bool:
        out = cluster.tool("reassign", "--reassignment-json-file", plan, "--verify").out
        return out.count("is completed") == len(rows)

    wait_until(is_done, f"the replicas are {replicas}", 90)
    for n, each in enumerate(replicas):
        assert sorted(cluster.partition(TOPIC, n).replicas) == sorted(each)
        assert len({cluster.log(one, n) for one in each}) == 1, "the logs are equal"


def test_partitions_move_with_a_throttle_and_brokers_are_replaced(cluster: MixedCluster) -> None:
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=[[FIRST, STOCK], [STOCK, FIRST]])
    cluster.admin.create_topics([topic])[TOPIC].result(30)
    write(cluster)

    # kraftd's third broker follows a kraftd leader and a stock one, no faster than the throttle allows.
    began_s = time.monotonic()
    reassign(cluster, [[FIRST, THIRD], [STOCK, THIRD]], "--throttle", THROTTLE_BYTES)
    bytes_of_all = PARTITIONS * RECORDS * RECORD_BYTES
    assert time.monotonic() - began_s > bytes_of_all / (2 * THROTTLE_BYTES), "it was throttled"
    for broker_id in cluster.ids:
        assert (
            "throttled"
            not in cluster.tool(
                "configs", "--describe", "--entity-type", "brokers", "--entity-name", broker_id
            ).out
        )

    # The third leads, and others follow it; then it is drained.
    reassign(cluster, [[THIRD, STOCK], [THIRD, FIRST]])
    cluster.tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    wait_until(lambda: cluster.leaders() == [THIRD] * PARTITIONS, "the third leads", 30)
    reassign(cluster, [[FIRST, STOCK], [STOCK, FIRST]])
    wait_until(lambda: THIRD not in cluster.leaders(), "others lead", 30)
    left = [path.name for path in cluster.broker(THIRD).data.glob(f"{TOPIC}-*")]
    assert all(name.endswith("-delete") for name in left)

    # A stop moves the leaders first; the broker comes back with an empty disk, and gets all again.
    reassign(cluster, [[FIRST, STOCK, THIRD], [THIRD, STOCK, FIRST]])
    ours = cluster.ours[THIRD]
    assert ours.stop() == 0
    assert '"state":"SHUTTING_DOWN"' in ours.log_text()
    assert all(leader in (FIRST, STOCK) for leader in cluster.leaders())
    shutil.rmtree(ours.data)
    ours.format(cluster.cluster_id)
    ours.start()
    cluster.wait_until_in_sync()
    wait_until(cluster.logs_are_equal, "the logs are equal", 30)

    # The broker leaves for good.
    reassign(cluster, [[FIRST, STOCK], [STOCK, FIRST]])
    assert ours.stop() == 0
    cluster.tool("cluster", "unregister", "--id", THIRD)
    wait_until(lambda: cluster.live_brokers() == {FIRST, STOCK}, "it is unregistered", 30)
