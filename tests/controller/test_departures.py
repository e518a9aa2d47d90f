"""The partitions that a broker has still to leave, when it leaves very many."""

from __future__ import annotations

import pytest

from kraftd.controller.brokers.departures import Departure, is_to_be_left
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata.state import NO_LEADER, PartitionState
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster, partition

TOPIC = bytes(15) + b"\7"


@pytest.mark.parametrize(
    ("state", "is_left"),
    [
        (partition((1, 2)), True),
        (partition((2, 1)), True),
        (partition((1,)), True),
        (partition((2, 1), isr=(2,)), False),
        (partition((1, 2), isr=(1,), leader=NO_LEADER), False),
        (partition((2, 3)), False),
    ],
)
def test_a_partition_is_left_if_that_changes_it(state: PartitionState, is_left: bool) -> None:
    cluster = Cluster().brokers(1, 2, 3)
    topic = cluster.topic("t", state)
    assert is_to_be_left(cluster.image, 1, (topic.id, 0)) is is_left


def test_a_deleted_partition_is_not_left() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", (1, 2))
    assert not is_to_be_left(cluster.image, 1, (topic.id, 1))
    assert not is_to_be_left(cluster.image, 1, (TOPIC, 0))


def test_it_visits_every_partition_of_every_topic_in_order() -> None:
    cluster = Cluster().brokers(1, 2)
    first = cluster.topic("first", (1, 2), (2,), (2, 1), (2,), (1, 2))
    second = cluster.topic("second", (2,), (1, 2))
    departure = Departure(1, 101, [(first.id, 0b10101), (second.id, 0b10)])
    steps = []
    while not departure.is_over:
        found, position = departure.next(cluster.image, 2)
        steps.append(found)
        departure.reach(position)
    assert steps == [[(first.id, 0), (first.id, 2)], [(first.id, 4), (second.id, 1)]]
    assert departure.next(cluster.image, 2) == ([], 4)


@pytest.mark.parametrize(
    ("message", "is_noted"),
    [
        (PartitionRecord(3, TOPIC, (1, 2), (1, 2), (), (), 1), True),
        (PartitionRecord(3, TOPIC, (1, 2), (1, 2), (), (), 2), True),
        (PartitionRecord(3, TOPIC, (1, 2), (2,), (), (), 2), False),
        (PartitionChangeRecord(3, TOPIC, leader=1), True),
        (PartitionChangeRecord(3, TOPIC, leader=2), False),
        (PartitionChangeRecord(3, TOPIC, isr=(2, 1)), True),
        (PartitionChangeRecord(3, TOPIC, isr=(2,)), False),
        (PartitionChangeRecord(3, TOPIC, isr=()), False),
        (NoOpRecord(), False),
    ],
)
def test_partitions_that_the_broker_gets_meanwhile_are_noted(message: Message, is_noted: bool) -> None:
    cluster = Cluster().brokers(1, 2)
    departure = Departure(1, 101, [])
    assert departure.is_over
    departure.note([VersionedRecord(message, 0)])
    assert departure.is_over is not is_noted
    _, position = departure.next(cluster.image, 5)
    assert position == int(is_noted)


def test_one_call_examines_four_partitions_for_each_that_it_may_leave() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", *[partition((2, 1), isr=(2,))] * 9, (1, 2))
    departure = Departure(1, 101, [(topic.id, (1 << 10) - 1)])
    assert departure.next(cluster.image, 2) == ([], 8)
    departure.reach(8)
    assert departure.next(cluster.image, 2) == ([(topic.id, 9)], 10)
