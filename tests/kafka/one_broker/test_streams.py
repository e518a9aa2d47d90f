"""Kafka Streams counts words on a whole Kafka exactly once, while the application and broker are killed."""

from __future__ import annotations

import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import random_uuid
from testkit.fetch import streams_libs
from testkit.java import classpath, find_java
from testkit.node import CombinedNode, Kind
from testkit.process import wait_until
from tests.kafka.one_broker.test_transactions import PROPERTIES

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

PROGRAM = Path(__file__).parents[1] / "java" / "WordCount.java"
PARTITIONS, LINES, WORDS = 3, 1_200, 20


class Counting:
    """The application; its state outlives it."""

    def __init__(self, node: CombinedNode, home: Path) -> None:
        self._node, self._home = node, home
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<Counting at {self._node.bootstrap}>"

    def __enter__(self) -> Self:
        path = f"{classpath()}:{streams_libs()}/*"
        command = [find_java(), "-Xmx256m", "-cp", path, PROGRAM, self._node.bootstrap, self._home / "state"]
        with open(self._home / "streams.txt", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def counts(node: CombinedNode) -> dict[str, list[int]]:
    """The counts of each word in the order of the committed records."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": False,
        }
    )
    found: dict[str, list[int]] = defaultdict(list)
    consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])
    try:
        while records := consumer.consume(1_000, 2):
            for record in records:
                assert not record.error(), record.error()
                found[record.key().decode()].append(int(record.value()))
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("of", ["kraftd", "apache"])
def test_words_are_counted_exactly_once(of: Kind, tmp_path: Path) -> None:
    random = Random(7)
    node = CombinedNode(of, tmp_path / "node", PROPERTIES)
    node.format(random_uuid(), "--standalone")
    node.start()
    node.wait_ready()
    expected: Counter[str] = Counter()
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1) for name in ("lines", "counts")]
        for created in admin.create_topics(topics).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})

        def write(lines: int) -> None:
            for _ in range(lines):
                words = [f"w{random.randrange(WORDS)}" for _ in range(4)]
                expected.update(words)
                producer.produce("lines", " ".join(words).encode(), random.randbytes(2))
                producer.poll(0)
                time.sleep(0.002)
            assert producer.flush(30) == 0

        def has_counted(share: float) -> bool:
            found = sum(len(each) for each in counts(node).values())
            return found >= share * sum(expected.values())

        write(LINES // 3)
        for _ in range(2):  # killed while it counts, with a transaction open
            with Counting(node, tmp_path):
                wait_until(lambda: has_counted(0.2), "some counts", 90)
                write(LINES // 6)
        with Counting(node, tmp_path):
            wait_until(lambda: has_counted(0.5), "half of the counts", 90)
            node.kill()
            node.start()
            node.wait_ready()
            write(LINES // 3)
            wait_until(lambda: has_counted(1), "all counts", 120)
            found = counts(node)
        assert {word: list(range(1, count + 1)) for word, count in expected.items()} == found
    finally:
        node.kill()
