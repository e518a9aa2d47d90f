"""The causes of leader moves in a log of what Apache Kafka's own controller decides.

Its ReplicationControlManager decides (`tests/controller/java`), and the log has its records as its
QuorumController appends them: 10,000 at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages import alter_partition_request as alter
from kraftd.messages import elect_leaders_request as elect
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.metadata_version import record_version
from kraftd.spark.tables.moves import leader_moves
from kraftd.wire.codec import encode_bytes
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.oracle import ControllerOracle
from tests.spark.logs import LogDirectory
from tests.spark.test_tables import timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MAX_RECORDS = 10_000
TOPICS = {"ten": (10, (1, 2))}
TOPICS |= {f"medium-{number}": (1_000, (2, 3)) for number in range(10)}
TOPICS |= {f"large-{number}": (1_000, (3, 4)) for number in range(100)}
# In a topic of 100,000 partitions each change of an ISR would cost Kafka's controller 100,000 steps.
LEVEL = 30


class KafkaLog:
    """A log of Kafka's decisions, and how many leaders each cause must have moved."""

    def __init__(self, oracle: ControllerOracle, path: Path) -> None:
        self.oracle = oracle
        self.directory = LogDirectory(path)
        self.directory.elect(1, 1)
        self.expected: Counter[str] = Counter()
        self.epochs: Counter[str] = Counter()  # leader and partition epoch of the first partitions
        oracle.start(1)

    def write(self, *messages: Message) -> None:
        """Records that Kafka is given, and takes as they are."""
        for at in range(0, len(messages), MAX_RECORDS):
            part = messages[at : at + MAX_RECORDS]
            self.oracle.replay([VersionedRecord(one, record_version(type(one), LEVEL)) for one in part])
            self._append(part)

    def decide(self, line: str, cause: str = "", moves: int = 0) -> None:
        """Append what Kafka decides, which moves so many leaders for this cause."""
        answer = self.oracle.run(line)
        assert answer.error is None, answer.error
        messages = [record.message for record in answer.records]
        for at in range(0, len(messages), MAX_RECORDS):
            self._append(messages[at : at + MAX_RECORDS])
        assert moves == sum(isinstance(one, PartitionChangeRecord) and one.leader != -2 for one in messages)
        self.expected += Counter({cause: moves})

    def request(self, name: str, message: Message, version: int, cause: str = "", moves: int = 0) -> None:
        self.decide(f"{name} {version} {encode_bytes(message, version).hex()}", cause, moves)

    def _append(self, messages: Sequence[Message]) -> None:
        self.directory.append(messages)
        for one in messages:
            if isinstance(one, PartitionChangeRecord) and one.partition_id == 0:
                name = one.topic_id.decode().rstrip(".")
                self.epochs[name, "partition"] += 1
                self.epochs[name, "leader"] += one.leader != -2


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def registered(broker: int, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker, broker_epoch=epoch, incarnation_id=bytes([broker]) * 16, fenced=False,
        log_dirs=(bytes([broker]) * 16,),
    )  # fmt: skip


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


@pytest.fixture(scope="module")
def oracle() -> Iterator[ControllerOracle]:
    oracle = ControllerOracle()
    yield oracle
    oracle.close()


def test_the_causes_of_what_kafkas_controller_decides(
    spark: SparkSession, oracle: ControllerOracle, tmp_path: Path
) -> None:
    log = KafkaLog(oracle, tmp_path / "node")
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
    leader_epoch, partition_epoch = (log.epochs["medium-0", kind] for kind in ("leader", "partition"))
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
    timeline = timeline_of(spark, log.directory.path)
    causes = leader_moves(timeline).groupBy("cause").count().collect()
    assert {row["cause"]: row["count"] for row in causes} == log.expected
