"""Transactions on a whole Kafka of one kraftd process, by librdkafka and by Kafka's own clients and tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import random_uuid
from testkit.node import CombinedNode

pytestmark = pytest.mark.kafka

PROPERTIES = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CombinedNode]:
    node = CombinedNode("kraftd", tmp_path / "node", PROPERTIES)
    node.format(random_uuid(), "--standalone")
    node.start()
    node.wait_ready()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for created in admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 2, 1)]).values():
        created.result(10)
    yield node
    node.kill()


def producer(node: CombinedNode, id: str, timeout_ms: int = 60_000) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "transactional.id": id,
            "transaction.timeout.ms": timeout_ms,
        }
    )
    made.init_transactions(30)
    return made


def values(node: CombinedNode, topic: str, isolation: str = "read_committed") -> list[str]:
    """What a reader of all partitions sees up to their ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": False,
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic).topics[topic].partitions)
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in partitions}
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        seen: list[str] = []
        while any(consumer.position([TopicPartition(topic, p)])[0].offset < end for p, end in ends.items()):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                seen.append(message.value().decode())
        return seen
    finally:
        consumer.close()


def test_a_reader_of_committed_records_sees_exactly_those(node: CombinedNode) -> None:
    one = producer(node, "one")
    for number in range(6):
        one.begin_transaction()
        for part in range(2):
            one.produce("out", f"{number}-{part}", partition=part)
        one.flush(30)
        if number % 2:
            one.abort_transaction(30)
        else:
            one.commit_transaction(30)
    assert sorted(values(node, "out")) == ["0-0", "0-1", "2-0", "2-1", "4-0", "4-1"]
    assert len(values(node, "out", "read_uncommitted")) == 12
