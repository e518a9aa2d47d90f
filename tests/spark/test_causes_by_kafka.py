"""The causes of leader moves in a log of what Apache Kafka's own controller decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages import alter_partition_request as alter
from kraftd.messages import elect_leaders_request as elect
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.spark.divided_tables import write_divided_tables
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.inputs.storage import open_parquet
from kraftd.wire.message import Message
from tests.controller.oracle import ControllerOracle
from tests.spark.kafka_log import LEVEL, KafkaLog, registered
from tests.spark.logs import LogDirectory

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPICS = {"ten": (10, (1, 2))}
TOPICS |= {f"medium-{number}": (1_000, (2, 3)) for number in range(10)}
TOPICS |= {f"large-{number}": (1_000, (3, 4)) for number in range(100)}
# In a topic of 100,000 partitions each change of an ISR would cost Kafka's controller 100,000 steps.


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def created(name: str, index: int) -> PartitionRecord:
    replicas = TOPICS[name][1]
    directories = tuple(bytes([broker]) * 16 for broker in replicas)
    leader = replicas[0]
    return PartitionRecord(index, topic_id(name), replicas, replicas, (), (), leader, 0, 0, 0, directories)


def rejoined(prefix: str) -> list[Message]:
    """All replicas of topics with this prefix are in sync again."""
    return [
        PartitionChangeRecord(index, topic_id(name), isr=replicas)
        for name, (count, replicas) in TOPICS.items()
        if name.startswith(prefix)
        for index in range(count)
    ]


def test_the_causes_of_what_kafkas_controller_decides(oracle: ControllerOracle, tmp_path: Path) -> None:
    log = KafkaLog(oracle, LogDirectory(tmp_path / "node"))
    log.write(FeatureLevelRecord("metadata.version", LEVEL))
    log.write(*(registered(broker, 10 + broker) for broker in range(1, 6)))
    for name, (count, _) in TOPICS.items():
        log.write(TopicRecord(name, topic_id(name)))
        log.write(*(created(name, index) for index in range(count)))
    # Fencings of 10, 10,010 and 110,000 partitions, of which the last leaves topics without leaders.
    log.decide("fence 1", "broker fenced", 10)
    log.decide("unfence 1")
    log.write(*rejoined("ten"))
    log.decide("fence 2", "broker fenced", 10_010)
    log.decide("fence 3", "broker fenced", 110_000)
    log.decide("unfence 3", "broker unfenced", 10_000)
    log.decide("unfence 2")
    log.write(*rejoined("ten"), *rejoined("medium"))
    log.decide("shut_down 3", "controlled shutdown", 10_000)
    log.decide("fence 3")
    log.write(registered(3, 99), *rejoined("medium")[:1])
    # A reassignment of a partition from brokers 2 and 3 to 3 and 5 ends when 5 is in sync.
    moved = reassign.ReassignableTopic("medium-0", [reassign.ReassignablePartition(0, (3, 5))])
    log.request("reassign", reassign.AlterPartitionReassignmentsRequest(60_000, True, [moved]), 1)
    isr = [alter.BrokerState(broker, epoch) for broker, epoch in ((2, 12), (3, 99), (5, 15))]
    epochs = (log.epochs[topic_id("medium-0"), 0, kind] for kind in ("leader", "partition"))
    leader_epoch, partition_epoch = epochs
    wanted = alter.PartitionData(0, leader_epoch, (), isr, 0, partition_epoch)
    request = alter.AlterPartitionRequest(2, 12, [alter.TopicData(topic_id("medium-0"), [wanted])])
    log.request("alter_partition", request, 3, "reassignment", 1)
    # Broker 1 is fenced once more; half of the leaders return by request, half by the controller's balancing.
    log.decide("fence 1", "broker fenced", 10)
    log.decide("unfence 1")
    log.write(*rejoined("ten"))
    half = [elect.TopicPartitions("ten", tuple(range(5)))]
    log.request("elect_leaders", elect.ElectLeadersRequest(0, half), 2, "preferred election", 5)
    log.decide("balance", "preferred election", 5)
    # Both replicas are lost, and the one that was not in sync returns.
    log.decide("fence 1", "broker fenced", 10)
    log.decide("fence 2", "broker fenced", 10 + 9_999)
    log.decide("unfence 1")
    log.write(ConfigRecord(2, "ten", "unclean.leader.election.enable", "true"))
    log.decide("elect_uncleanly", "unclean election", 10)
    found = committed_log(find_replicas([str(log.directory.path)]))
    extent, output = Extent(found, found.end_offset), tmp_path / "out"
    assert write_divided_tables(extent, [found.replica], str(output), ["leader_moves"], lambda _: None)
    moves = open_parquet(str(output / "leader_moves")).to_table(["offset", "cause"])
    causes = dict(zip(moves["offset"].to_pylist(), moves["cause"].to_pylist(), strict=True))
    assert causes == log.causes
