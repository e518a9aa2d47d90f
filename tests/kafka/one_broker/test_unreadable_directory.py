"""A node that starts while one of its log directories cannot be read: kraftd beside Apache Kafka."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until

pytestmark = pytest.mark.kafka

TIMES = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


def described(node: CombinedNode) -> dict[str, tuple[int, list[str]]]:
    """The error of each log directory and the partitions of user topics in it, by its last name."""
    with Client(HOST, node.client_port) as client:
        answer: Any = client.call(DescribeLogDirsRequest(topics=None), version=4)
    return {
        Path(one.log_dir).name: (
            one.error_code,
            sorted(
                f"{topic.name}-{part.partition_index}"
                for topic in one.topics
                for part in topic.partitions
                if not topic.name.startswith("__")
            ),
        )
        for one in answer.results
    }


def read(node: CombinedNode, topic: str, partition: int) -> bytes | None:
    """The first record of a partition."""
    reader = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
    try:
        reader.assign([TopicPartition(topic, partition, 0)])
        message = reader.poll(20)
        return None if message is None or message.error() else message.value()
    finally:
        reader.close()


@pytest.mark.parametrize("kind", ["kraftd", "apache"])
def test_the_other_directories_serve_and_it_comes_back__kip858(kind: Kind, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    node = CombinedNode(kind, tmp_path / "node", TIMES | {"log.dirs": ",".join(map(str, paths))})
    node.format(random_uuid(), "--standalone")
    node.start()
    node.wait_ready()
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})

        def leaders(topic: str) -> list[int]:
            found = admin.list_topics(topic, timeout=10).topics[topic].partitions
            return [found[index].leader for index in sorted(found)]

        admin.create_topics([NewTopic("t", 4, 1)])["t"].result(30)
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for index in range(4):
            producer.produce("t", b"%d" % index, partition=index)
        assert producer.flush(30) == 0
        before = described(node)
        assert all(error == 0 and len(logs) == 2 for error, logs in before.values())
        node.stop()

        # For root, no permission is missing: a directory in the file's place cannot be read either.
        os.rename(paths[1] / "meta.properties", tmp_path / "kept")
        (paths[1] / "meta.properties").mkdir()
        node.start()
        node.wait_ready()
        offline = {"a": before["a"], "b": (56, [])}  # KAFKA_STORAGE_ERROR
        wait_until(lambda: described(node) == offline, "the other directory serves", 20)
        lost = sorted(int(name.rpartition("-")[2]) for name in before["b"][1])
        expected = [-1 if index in lost else 1 for index in range(4)]
        wait_until(lambda: leaders("t") == expected, "only the other partitions have leaders", 20)
        (kept, *_) = sorted({0, 1, 2, 3}.difference(lost))
        assert read(node, "t", kept) == b"%d" % kept
        admin.create_topics([NewTopic("u", 2, 1)])["u"].result(30)
        wait_until(lambda: leaders("u") == [1, 1], "a new topic is led", 20)
        logs = sorted([*before["a"][1], "u-0", "u-1"])
        wait_until(lambda: described(node)["a"][1] == logs, "its logs are in the other directory", 20)
        assert not (paths[0] / f"t-{lost[0]}").exists()
        node.stop()

        shutil.rmtree(paths[1] / "meta.properties")
        os.rename(tmp_path / "kept", paths[1] / "meta.properties")
        node.start()
        node.wait_ready()
        wait_until(lambda: leaders("t") == [1] * 4, "all partitions have leaders again", 20)
        wait_until(lambda: described(node) == {"a": (0, logs), "b": before["b"]}, "all logs are there", 20)
        assert read(node, "t", lost[0]) == b"%d" % lost[0]
    finally:
        node.kill()
