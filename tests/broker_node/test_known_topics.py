"""What coordinators know of the image: hashes of very large topics come in slices."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.broker_node.coordination import known_topics
from kraftd.broker_node.coordination.known_topics import PARTITIONS_AT_ONCE, KnownTopics
from kraftd.groups.consumer.gathering import ALONE_MS
from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from tests.broker_node.harness import BrokerHarness
from tests.groups.calls import Counted

BROKER = 4  # a type of resources
TOPIC = bytes(15) + b"\x10"
BROKERS, PARTITIONS = 10, 12_000
MAX_CALLS = PARTITIONS // 2
DIRECTORY = b"directory------A"


class Node:
    """An image that changes, and the slices of a node."""

    def __init__(self, partitions: int) -> None:
        self.image = Image()
        self.slices: deque[Iterator[None]] = deque()
        self.topics = KnownTopics(SimpleNamespace(image=self.image, node_id=1), self.go_on)  # type: ignore[arg-type]
        for broker_id in range(BROKERS):
            self.apply(RegisterBrokerRecord(broker_id, rack=f"rack-{broker_id % 3}", log_dirs=(DIRECTORY,)))
        self.apply(TopicRecord("t", TOPIC))
        for index in range(partitions):
            replicas = index % BROKERS, (index + 3) % BROKERS
            record = PartitionRecord(index, TOPIC, replicas, replicas, leader=replicas[0])
            record.directories = (DIRECTORY,) * 2
            self.apply(record)

    def apply(self, record: Message) -> None:
        self.image.apply(record, self.image.offset + 1, 3)

    def go_on(self, slices: Iterator[None]) -> None:
        if next(slices, self) is not self:
            self.slices.append(slices)

    def run(self) -> int:
        """Run all slices; return the most calls of one."""
        step = Counted(lambda: self.go_on(self.slices.popleft()))
        while self.slices:
            step()
        return max(step.calls)

    def whole_hash(self) -> int:
        partitions = self.image.topics[TOPIC].partitions
        racks = {broker.id: broker.rack or "" for broker in self.image.brokers.values()}
        return topic_hash(TOPIC, "t", tuple(one.replicas for one in partitions.values()), racks)


def test_a_large_topic_is_hashed_in_slices() -> None:
    node = Node(PARTITIONS)
    assert node.topics.lacks_hash("t") and not node.topics.lacks_hash("other")
    node.go_on(node.topics.hash_in_slices("t"))
    assert node.run() < MAX_CALLS
    asked = Counted(node.topics.topic_hash)
    assert asked("t") == node.whole_hash() and max(asked.calls) < 10
    assert not node.topics.lacks_hash("t")


def test_a_changed_large_topic_has_its_old_hash_until_its_slices_end() -> None:
    node = Node(PARTITIONS)
    topics, before = node.topics, node.whole_hash()
    assert topics.topic_hash("t") is None
    assert node.run() < MAX_CALLS
    assert topics.topic_hash("t") == before
    node.apply(PartitionChangeRecord(7, TOPIC, replicas=(1, 2), isr=(1, 2), leader=1))
    version = topics.hashes_version()
    assert topics.topic_hash("t") == before and topics.topic_hash("t") == before
    assert len(node.slices) == 1
    assert node.run() < MAX_CALLS
    assert topics.topic_hash("t") == node.whole_hash() != before
    assert topics.hashes_version() > version


def test_a_record_without_content_leaves_the_version_and_the_hashes() -> None:
    node = Node(3)
    topics, version = node.topics, node.topics.hashes_version()
    hashed = topics.topic_hash("t")
    node.apply(NoOpRecord())
    asked = Counted(topics.topic_hash)
    assert topics.hashes_version() == version and asked("t") == hashed and max(asked.calls) < 10
    node.apply(PartitionChangeRecord(1, TOPIC, replicas=(1, 2), isr=(1, 2), leader=1))
    assert topics.hashes_version() != version and topics.topic_hash("t") == node.whole_hash() != hashed


def test_a_topic_that_changes_between_slices_is_hashed_again() -> None:
    node = Node(PARTITIONS_AT_ONCE + 1)
    topics = node.topics
    topics.topic_hash("t")
    node.go_on(node.slices.popleft())
    node.apply(PartitionRecord(PARTITIONS_AT_ONCE + 1, TOPIC, (1,), (1,), leader=1, directories=(DIRECTORY,)))
    node.run()
    assert topics.topic_hash("t") is None, "its number of partitions is part of the hash"
    node.run()
    for replicas in (1, 2), (2, 3):
        node.apply(PartitionChangeRecord(0, TOPIC, replicas=replicas, isr=replicas, leader=replicas[0]))
        topics.topic_hash("t")
        node.go_on(node.slices.popleft())
    node.run()
    topics.topic_hash("t")
    node.run()
    assert topics.topic_hash("t") == node.whole_hash()


def test_a_members_first_heartbeat_waits_for_the_hash__kip848(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_topics, "PARTITIONS_AT_ONCE", 1)
    monkeypatch.setattr(known_topics, "PARTITIONS_A_SLICE", 1)
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1)
    harness.create_topic("t", 3)
    harness.pass_time(10)
    seen: list[Any] = []
    topics: Any = harness.broker.groups.coordinator.topics
    monkeypatch.setattr(
        topics, "topic_hash", lambda name: seen.append(KnownTopics.topic_hash(topics, name)) or seen[-1]
    )
    request = ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 60_000, ("t",), None, None, [])
    slot = harness.client_send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    harness.pass_time(10 + ALONE_MS)
    answer = harness.response(slot)
    assert answer.error_code == 0 and len(answer.assignment.topic_partitions[0].partitions) == 3
    assert len(seen) == 1 and seen[0] is not None


def test_a_brokers_own_dynamic_config_goes_before_that_of_all__kip226() -> None:
    node = Node(0)
    key, of = "group.consumer.assignment.interval.ms", node.topics.dynamic_config
    assert of(key) is None
    node.apply(ConfigRecord(BROKER, "", key, "700"))
    node.apply(ConfigRecord(BROKER, "2", key, "800"))
    assert of(key) == "700"
    node.apply(ConfigRecord(BROKER, "1", key, "900"))
    assert of(key) == "900"
    node.apply(ConfigRecord(BROKER, "1", key, "none"))  # a broker obeys nothing that is not valid
    assert of(key) == "700"
