"""What a broker takes of the image's changes is what it hosts in the committed image."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import NewestChanges, ReplicaChanges
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
    committed, marked, first_take = -1, False, random.choice([0, random.randrange(150)])
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
        if step < first_take:
            continue
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


def test_changes_that_are_final_are_one_a_partition_until_the_first_is_taken() -> None:
    """A start replays several changes of each of very many partitions before the broker hosts them."""
    image, topic_id = Image(), bytes(15) + b"\1"
    image.replica_changes = changes = ReplicaChanges(BROKER_ID)
    image.apply_all([*LATEST, TopicRecord("t", topic_id)], 0, 1)
    record = PartitionRecord(0, topic_id, (BROKER_ID,), (BROKER_ID,), leader=BROKER_ID)
    image.apply(record, 10, 1)
    leaders = [PartitionChangeRecord(0, topic_id, leader=leader) for leader in (-1, BROKER_ID, -1, BROKER_ID)]
    image.apply_all(leaders[:2], 11, 1)
    assert repr(changes) == "<1 ReplicaChanges of broker 1>"
    image.mark()
    image.apply_all(leaders[2:], 13, 1)  # an active controller's, which may be undone
    assert repr(changes) == "<3 ReplicaChanges of broker 1>"
    image.commit(13)
    assert repr(changes) == "<2 ReplicaChanges of broker 1>"
    image.commit(14)
    assert repr(changes) == "<1 ReplicaChanges of broker 1>"
    (change,) = image.take_replica_changes(15, 10)
    assert change.state is image.partition(topic_id, 0) and change.state.partition_epoch == 3
    image.apply_all(leaders[:2], 15, 1)
    image.commit(16)
    assert [change.offset for change in image.take_replica_changes(17, 10)] == [15, 16]


def test_a_topic_that_was_made_again_counts_with_what_is_gone_of_the_former() -> None:
    newest, state = NewestChanges(), PartitionState((BROKER_ID,), (b"",), (BROKER_ID,))
    former, present = bytes(15) + b"\1", bytes(15) + b"\2"
    for index in range(2):
        newest.note(former, "t", index, state)
    for index in range(2):
        newest.note(former, "t", index, None)
    newest.note(present, "t", 0, state)
    newest.note(former, "t", 0, None)  # by the undoing of a transaction
    newest.note(former, "t", 2, None)
    found = [newest.get("t", index) for index in range(4)]
    assert [one and (one.topic_id, one.state) for one in found] == [
        (present, state),
        (present, None),
        (present, None),
        None,
    ]
    assert newest.pop("t", 0) == found[0] and newest.pop("t", 0) is None and list(newest) == found[1:3]
