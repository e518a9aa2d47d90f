"""What a broker takes of the image's changes is what it hosts in the committed image."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import ReplicaChanges
from kraftd.metadata.state import PartitionState
from kraftd.wire.message import Message
from tests.metadata.histories import LATEST, next_record, replayed

BROKER_ID = 1
Hosted = dict[tuple[bytes, int], PartitionState]


def hosted(image: Image) -> Hosted:
    return {
        (topic.id, index): state
        for topic in image.topics.values()
        for index, state in topic.partitions.items()
        if BROKER_ID in state.replicas
    }


def take(image: Image, committed: int, taken: Hosted, most: int = 1 << 20) -> None:
    for change in image.take_replica_changes(committed + 1, most):
        key = change.topic_id, change.partition
        if change.state is None:
            taken.pop(key, None)
        else:
            taken[key] = change.state


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_a_broker_takes_what_is_committed_and_nothing_else(seed: int) -> None:
    random, image, taken = Random(seed), Image(), Hosted()
    image.replica_changes = ReplicaChanges(BROKER_ID)
    log: list[Message] = []
    seen, removed = set[bytes](), set[bytes]()  # ids of topics
    committed, marked = -1, False
    for step in range(150):
        what = random.random()
        if what < 0.80 or step < len(LATEST):
            log.append(LATEST[len(log)] if len(log) < len(LATEST) else next_record(image, random))
            if random.random() < 0.5:
                image.apply(log[-1], len(log) - 1, 1)
            else:
                image.apply_all([log[-1]], len(log) - 1, 1)
            if not marked:
                committed = len(log) - 1
        elif what < 0.85 and not marked:
            image.mark()
            marked = True
        elif what < 0.93 and marked:
            committed = random.randint(committed, len(log) - 1)
            image.commit(committed)
        elif marked:
            del log[committed + 1 :]
            image.undo_to(committed)
            marked = False
        take(image, committed, taken, random.choice([1, 5, 1 << 20]))
        if not image.in_transaction and random.random() < 0.2:
            take(image, committed, taken)
            as_of = replayed(log[: committed + 1])
            if not as_of.in_transaction:
                assert taken == hosted(as_of)
                removed |= {id for _name, id in image.take_removed_topics(committed + 1)}
                assert seen - as_of.topics.keys() <= removed and not removed & as_of.topics.keys()
                seen |= as_of.topics.keys()


def test_a_snapshots_partitions_are_taken_as_of_its_end() -> None:
    whole = Image()
    for offset, record in enumerate(LATEST):
        whole.apply(record, offset, 1)
    topic_id = bytes(15) + b"\1"
    whole.apply(TopicRecord("t", topic_id), 2, 1)
    for index in range(20):
        whole.apply(
            PartitionRecord(index, topic_id, (BROKER_ID,), (BROKER_ID,), leader=BROKER_ID), 3 + index, 1
        )
    loaded, taken = Image(), Hosted()
    loaded.replica_changes = ReplicaChanges(BROKER_ID)
    loaded.apply_all([record.message for record in whole.records()], 5, 1, of_snapshot=True)
    take(loaded, 5, taken)
    assert taken == hosted(whole)
