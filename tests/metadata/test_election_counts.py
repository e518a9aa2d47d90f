"""Elections in the metrics: counted as changes of partitions are applied."""

from __future__ import annotations

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image

TOPIC = bytes(15) + b"\5"
RECOVERING = 1


def image() -> Image:
    """One leaderless partition of brokers 1 and 2; 2 is in its ELR."""
    leaderless = Image()
    leaderless.apply(TopicRecord("t", TOPIC), 0, 1)
    partition = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC,
        replicas=(1, 2),
        isr=(),
        leader=-1,
        leader_epoch=1,
        eligible_leader_replicas=(2,),
    )
    leaderless.apply(partition, 1, 1)
    return leaderless


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)


def test_elections_from_the_elr_and_unclean_elections_are_counted() -> None:
    counted = image()
    counted.apply(change(leader=2, isr=(2,), eligible_leader_replicas=()), 2, 1)
    assert (counted.elections_from_elr, counted.unclean_elections) == (1, 0)
    counted.apply(change(leader=-1), 3, 1)
    counted.apply(change(leader=1, isr=(1,), leader_recovery_state=RECOVERING), 4, 1)
    assert (counted.elections_from_elr, counted.unclean_elections) == (1, 1)
    counted.apply(change(leader=1), 5, 1)
    assert (counted.elections_from_elr, counted.unclean_elections) == (1, 1)


def test_elections_replayed_during_the_load_are_not_counted() -> None:
    counted = image()
    counted.apply(change(leader=2, leader_recovery_state=RECOVERING), 2, 1)
    counted.forget_elections()
    assert (counted.elections_from_elr, counted.unclean_elections) == (0, 0)
