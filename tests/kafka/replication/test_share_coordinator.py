"""A stock broker coordinates a share group, whose members read from it and from kraftd (KIP-932). kraftd
is the share coordinator of both, and is restarted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.process import HOST, wait_until
from tests.kafka.replication.mixed import MixedCluster

pytestmark = pytest.mark.kafka

STOCK, OURS = 1, 2
GROUP, TOPIC = "shared", "work"
LED = "led"  # by kraftd


def produce(cluster: MixedCluster, first: int, count: int, topic: str = TOPIC) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


def consume(cluster: MixedCluster, count: int, topic: str = TOPIC, *options: str) -> list[int]:
    run = cluster.tool(
        "console-share-consumer", "--topic", topic, "--group", GROUP, "--max-messages", count,
        "--timeout-ms", 30_000, *options,
    )  # fmt: skip
    return [int(line) for line in run.out.split() if line.isdigit()]


def records_done(cluster: MixedCluster, name: str = TOPIC) -> int:
    """How many records the group needs no more, as kraftd's share coordinator knows it; -1 if it does not."""
    with Client(HOST, cluster.ours[OURS].port) as client:
        (topic,) = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12).topics
        key = SharePartitionKey(GROUP, topic.topic_id, 0)
        topics = [ReadStateSummaryData(key.topic_id, [PartitionData(key.partition, -1)])]
        answer = client.call(ReadShareGroupStateSummaryRequest(key.group_id, topics), 1)
    row = answer.results[0].partitions[0]
    assert row.error_code in (0, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return -1 if row.error_code else int(row.start_offset + row.delivery_complete_count)


def test_a_share_group_of_a_stock_broker_keeps_its_state_and_reads_at_kraftd(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, {STOCK: "apache", OURS: "kraftd"}) as cluster:
        placed = {
            TOPIC: [[STOCK]],
            LED: [[OURS]],
            "__consumer_offsets": [[STOCK]] * 2,
            "__share_group_state": [[OURS]] * 2,
        }
        topics = [NewTopic(name, len(rows), replica_assignment=rows) for name, rows in placed.items()]
        for made in cluster.admin.create_topics(topics).values():
            made.result(30)
        cluster.tool(
            "configs", "--alter", "--entity-type", "groups", "--entity-name", GROUP,
            "--add-config", "share.auto.offset.reset=earliest",
        )  # fmt: skip
        produce(cluster, 0, 20)
        assert consume(cluster, 20) == list(range(20))
        wait_until(lambda: records_done(cluster) == 20, "the state is written", 30)
        assert cluster.ours[OURS].stop() == 0
        cluster.ours[OURS].start()
        cluster.wait_for_live_brokers(STOCK, OURS)
        wait_until(lambda: records_done(cluster) == 20, "the state is loaded", 30)
        produce(cluster, 20, 5)
        assert consume(cluster, 5) == list(range(20, 25))
        wait_until(lambda: records_done(cluster) == 25, "the later state is written", 30)
        produce(cluster, 0, 20, LED)
        assert consume(cluster, 5, LED, "--release") == list(range(5))
        assert consume(cluster, 20, LED) == list(range(20))
        wait_until(lambda: records_done(cluster, LED) == 20, "what a member of kraftd accepts is kept", 30)
        assert '"level":"error"' not in cluster.ours[OURS].log_text()
