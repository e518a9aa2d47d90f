"""The causes of leader moves: of events in many batches, and of changes that no broker explains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.spark.inputs.storage import open_parquet
from kraftd.spark.replay import moves
from kraftd.spark.tables import causes
from kraftd.wire.message import Message
from tests.spark.logs import MS_PER_RECORD, LogDirectory
from tests.spark.test_replay import divided
from tests.spark.test_tables import rows_of, timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOPIC = b"t" * 16
PARTITIONS = 23


class Scene:
    """A log of events, and the cause that each move of a leader must have."""

    def __init__(self, path: Path) -> None:
        self.directory = LogDirectory(path)
        self.directory.elect(1, 1)
        self.expected: dict[int, str] = {}
        self.write(*(RegisterBrokerRecord(one, fenced=False, broker_epoch=one) for one in (1, 2, 3)))
        self.write(TopicRecord("orders", TOPIC), *(self.partition(index) for index in range(PARTITIONS)))

    @staticmethod
    def partition(index: int) -> PartitionRecord:
        directories = (b"d" * 16,) * 2
        return PartitionRecord(index, TOPIC, (1, 2), (1, 2), (), (), 1, 0, 0, 0, directories)

    def write(self, *messages: Message, cause: str = "", batch: int = 5) -> None:
        """Write an event in batches; all its changes that name a leader have this cause."""
        for at in range(0, len(messages), batch):
            first = self.directory.append(messages[at : at + batch])
            for offset, message in enumerate(messages[at : at + batch], first):
                if isinstance(message, PartitionChangeRecord) and message.leader != -2:
                    self.expected[offset] = cause

    def all_of(self, leader: int, isr: tuple[int, ...] | None) -> list[Message]:
        return [PartitionChangeRecord(index, TOPIC, leader=leader, isr=isr) for index in range(PARTITIONS)]


def fenced(broker: int, change: int = 1) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker, broker, fenced=change)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path / "node")
    both = scene.all_of(-2, (1, 2))
    scene.write(*scene.all_of(2, (2,)), fenced(1), cause="broker fenced")
    scene.write(fenced(1, -1))
    scene.write(*both)
    scene.write(*scene.all_of(1, None), cause="preferred election")
    # Fenced at once when it has shut down: the shutdown is the cause.
    stops = BrokerRegistrationChangeRecord(1, 1, 0, 1)
    scene.write(stops, *scene.all_of(2, (2,)), cause="controlled shutdown")
    scene.write(fenced(1))
    scene.write(NoOpRecord())
    scene.write(RegisterBrokerRecord(1, fenced=False, broker_epoch=60), *both)
    scene.write(*scene.all_of(1, None), cause="preferred election")
    # The last records before a fencing are another event's: broker 1 does not leave the ISR.
    scene.write(PartitionChangeRecord(0, TOPIC, leader=2), cause="election")
    scene.write(PartitionChangeRecord(1, TOPIC, leader=2, isr=(2,)), fenced(1), cause="broker fenced")
    scene.write(fenced(1, -1), *both)
    third = PartitionChangeRecord(2, TOPIC, leader=3, isr=(3,), replicas=(3,), directories=(b"d" * 16,))
    scene.write(third, cause="reassignment")
    # All members of the ISR are lost, and no broker leads. One returns, and another one is elected uncleanly.
    last = [PartitionChangeRecord(index, TOPIC, leader=-1, isr=(2,)) for index in range(3, PARTITIONS)]
    scene.write(*both[3:])
    scene.write(*[PartitionChangeRecord(index, TOPIC, leader=2, isr=(2,)) for index in range(3, PARTITIONS)],
                UnregisterBrokerRecord(1, 60), cause="broker unregistered")  # fmt: skip
    scene.write(*last, fenced(2), cause="broker fenced")
    scene.write(fenced(2, -1), PartitionChangeRecord(3, TOPIC, leader=2), cause="broker unfenced")
    scene.write(NoOpRecord())
    unclean = PartitionChangeRecord(4, TOPIC, leader=1, isr=(1,), leader_recovery_state=1)
    scene.write(unclean, cause="unclean election")
    again = PartitionChangeRecord(4, TOPIC, leader=2, isr=(2,))
    scene.write(again, cause="unclean election")
    scene.write(PartitionChangeRecord(4, TOPIC, leader=-1), fenced(2), cause="broker fenced")
    return scene


def check_groups(scene: Scene) -> None:
    """An event has partitions of several groups, each replayed alone."""
    path = scene.directory.path
    divided(path, path.with_name("out"))
    found = open_parquet(str(path.with_name("out") / "leader_moves")).to_table(["offset", "cause"])
    assert {row["offset"]: row["cause"] for row in found.to_pylist()} == scene.expected


def test_the_cause_is_that_of_the_event_in_whatever_batches_it_is(
    spark: SparkSession, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "BUCKET_OFFSETS", 8)
    found = rows_of(timeline_of(spark, scene.directory.path), "leader_moves")
    assert {row["offset"]: row["cause"] for row in found} == scene.expected
    check_groups(scene)


def test_the_parts_of_a_departure_between_other_decisions_have_its_cause(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kraftd lets a broker leave its partitions in parts."""
    for module in (causes, moves):
        monkeypatch.setattr(module, "MAX_UNDIVIDED", 4)
        monkeypatch.setattr(module, "MAX_PAUSE_MS", 15 * MS_PER_RECORD)
    scene = Scene(tmp_path / "node")
    moved = scene.all_of(2, (2,))
    other: list[Message] = [NoOpRecord(), PartitionChangeRecord(0, TOPIC, isr=(2,)), NoOpRecord()]
    # Two parts and a small one, which ends with the fencing.
    scene.write(*moved[:10], cause="broker fenced", batch=10)
    scene.write(*other)
    scene.write(*moved[10:20], cause="broker fenced", batch=10)
    scene.write(*other)
    scene.write(*moved[20:], fenced(1), cause="broker fenced")
    scene.write(fenced(1, -1))
    scene.write(*scene.all_of(-2, (1, 2)))
    scene.write(*scene.all_of(1, None), cause="preferred election")
    # The broker shuts down, and is fenced in the end.
    scene.write(BrokerRegistrationChangeRecord(1, 1, 0, 1))
    scene.write(*other[:1])
    scene.write(*moved[:10], cause="controlled shutdown", batch=10)
    scene.write(*other[:1])
    scene.write(*moved[10:20], cause="controlled shutdown", batch=10)
    scene.write(*other[:1])
    scene.write(*moved[20:], cause="controlled shutdown")
    scene.write(*other[:1])
    scene.write(fenced(1))
    # If the broker is not fenced soon, it does not explain why its leaders moved.
    scene.write(RegisterBrokerRecord(1, fenced=False, broker_epoch=300), *scene.all_of(-2, (1, 2)))
    scene.write(*scene.all_of(1, None), cause="preferred election")
    scene.write(*moved[:10], cause="election", batch=10)
    for _ in range(20):
        scene.write(NoOpRecord())
    scene.write(fenced(1))
    found = rows_of(timeline_of(spark, scene.directory.path), "leader_moves")
    assert {row["offset"]: row["cause"] for row in found} == scene.expected
    check_groups(scene)
