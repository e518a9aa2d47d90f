"""Transactions on a whole Kafka of one kraftd process, by librdkafka and by Kafka's own clients and tools."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import random_uuid
from testkit.java import classpath, compile_java, find_java, find_javac, tools
from testkit.node import CombinedNode
from testkit.process import wait_until

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
        marks = {p: consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in partitions}
        ends = {p: end for p, end in marks.items() if end}
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        seen: list[str] = []
        until_s = time.monotonic() + 30
        while any(consumer.position([TopicPartition(topic, p)])[0].offset < end for p, end in ends.items()):
            assert time.monotonic() < until_s, f"a reader is stuck after {seen}"
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


def test_java_copies_exactly_once_with_aborts_and_a_kill(node: CombinedNode) -> None:
    """A copy by a consumer's offsets in transactions (v2), whose node is killed between its two halves."""
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac")
    classes = compile_java(javac, Path(__file__).parents[1] / "java" / "Transactions.java")
    path = f"{classes}:{classpath()}"
    filling = Producer({"bootstrap.servers": node.bootstrap})
    for half in range(2):
        for number in range(40):
            filling.produce("in", f"{half}-{number}")
            filling.flush(30)
        command = [str(find_java()), "-cp", path, "Transactions", node.bootstrap, "40"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "copied 40" in done.stdout
        if half == 0:
            node.kill()
            node.start()
            node.wait_ready()
    expected = sorted(f"{half}-{number}" for half in range(2) for number in range(40))
    assert sorted(values(node, "out")) == expected


def test_a_killed_nodes_open_transaction_is_ended_by_its_next_producer(node: CombinedNode) -> None:
    first = producer(node, "id")
    first.begin_transaction()
    first.produce("out", "undecided", partition=0)
    first.flush(30)
    node.kill()
    node.start()
    node.wait_ready()
    second = producer(node, "id")
    second.begin_transaction()
    second.produce("out", "decided", partition=0)
    second.commit_transaction(30)
    assert values(node, "out") == ["decided"]
    with pytest.raises(KafkaException):
        first.commit_transaction(30)


def test_a_late_transaction_is_aborted_and_tools_show_it(node: CombinedNode) -> None:
    late = producer(node, "late", timeout_ms=3_000)
    late.begin_transaction()
    late.produce("out", "late", partition=0)
    late.flush(30)
    listed = tools().run("transactions", "--bootstrap-server", node.bootstrap, "list").check().out
    assert any(row.split()[0] == "late" for row in listed.splitlines()[1:])
    described = ("--bootstrap-server", node.bootstrap, "describe", "--transactional-id", "late")

    def is_aborted() -> bool:
        return "CompleteAbort" in tools().run("transactions", *described).check().out

    wait_until(is_aborted, "the transaction is aborted", 30)
    assert values(node, "out") == []
    with pytest.raises(KafkaException):
        late.commit_transaction(30)


def test_the_tool_aborts_a_transaction_that_holds_up_its_partition(node: CombinedNode) -> None:
    hanging = producer(node, "hanging")
    hanging.begin_transaction()
    hanging.produce("out", "open", partition=0)
    hanging.flush(30)
    behind = Producer({"bootstrap.servers": node.bootstrap})
    behind.produce("out", "after", partition=0)
    behind.flush(30)
    where = ("--topic", "out", "--partition", "0")
    tool = ("transactions", "--bootstrap-server", node.bootstrap)
    tools().run(*tool, "abort", *where, "--start-offset", "0").check()
    producers = tools().run(*tool, "describe-producers", *where).check().out
    (row,) = producers.splitlines()[1:]
    assert row.split()[-1] == "None", "no transaction is open in the partition"
    assert values(node, "out") == ["after"]
