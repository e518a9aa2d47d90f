"""Records applied in runs have the same result as records applied one by one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata import isr_runs
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.image import Image
from kraftd.metadata.shared_values import EqualPartitions, KnownPartitions
from kraftd.types import DIRECTORY_MIGRATING
from kraftd.wire.message import Message
from tests.metadata.checks import check, same
from tests.metadata.histories import LATEST, history, replayed

seeds = st.integers(0, 2**32)
DIRECTORIES = [bytes([broker_id]) * 16 for broker_id in range(7)]


def creations(random: Random, topics: int) -> list[Message]:
    """Topics with partitions: most of them plain, some changed again, some unusual; no contradictions."""
    records: list[Message] = []
    for number in range(topics):
        topic_id = random.randbytes(16)
        records.append(TopicRecord(f"topic{number}", topic_id))
        indexes: list[int] = []
        for _ in range(random.randint(0, 12)):
            index = random.choice((len(indexes), len(indexes), len(indexes), 70))
            replicas = (1, 2, 3) if random.random() < 0.7 else tuple(random.sample(range(1, 6), 3))
            record = PartitionRecord(
                index,
                topic_id,
                replicas,
                replicas,
                leader=replicas[0],
                leader_epoch=random.choice((0, 0, 0, 1)),
                partition_epoch=0,
                directories=tuple(DIRECTORIES[one] for one in replicas),
            )
            draw = random.random()
            if draw < 0.05:
                record.leader = random.choice((-1, *replicas))
            elif draw < 0.1:
                record.isr = replicas[:2]
            elif draw < 0.15:
                record.directories = random.choice(((), (DIRECTORY_MIGRATING,) * 3))
            elif draw < 0.2:
                record.adding_replicas = replicas[:1]
            elif draw < 0.25:
                record.last_known_elr = replicas[:1]
            elif draw < 0.3:
                record.isr = (
                    replicas[0],
                    6,
                )  # Kafka leaves this after a replica was removed and elected at once
            records.append(record)
            indexes.append(index)
            if random.random() < 0.1:
                records.append(PartitionChangeRecord(index, topic_id, leader=replicas[1]))
        for index in sorted(random.sample(sorted(set(indexes)), random.randint(0, len(set(indexes))))):
            isr = random.choice(((1, 2), (1, 2), (1, 2), (3,), (1, 2, 3, 4, 5), (6, 1)))
            change = PartitionChangeRecord(index, topic_id, isr=isr)
            draw = random.random()
            if draw < 0.1:
                change.leader = random.choice((-1, 2))
            elif draw < 0.2:
                change.eligible_leader_replicas = random.choice(((), (5,)))
            elif draw < 0.3:
                change.leader_recovery_state = random.choice((0, 1))
            elif draw < 0.4:
                change.directories = (DIRECTORIES[6],) * 3
            elif draw < 0.5:
                change.removing_replicas = random.choice(((), (5,)))
            elif draw < 0.6:
                change.isr = None
            records.append(change)
        if random.random() < 0.1:
            records.append(RemoveTopicRecord(topic_id))
    return records


def some_at_a_time(image: Image, records: list[Message], random: Random, *, first: int = 0) -> None:
    at = 0
    while at < len(records):
        count = random.choice((1, 2, 30))
        image.apply_all(records[at : at + count], first + at, 1)
        at += count


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_partitions_applied_in_runs_equal_those_applied_one_by_one(seed: int) -> None:
    records = creations(Random(seed), 12)
    image = Image()
    some_at_a_time(image, records, Random(f"cut {seed}"))
    same(image, replayed(records))
    check(image)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_any_history_applied_in_runs_gives_the_same_image(seed: int) -> None:
    records = history(seed, 120)
    image = Image()
    some_at_a_time(image, records, Random(f"cut {seed}"))
    same(image, replayed(records))
    check(image)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_runs_can_be_undone_record_by_record(seed: int) -> None:
    random = Random(seed)
    records = [*LATEST, *creations(random, 10)]
    first_count = random.randint(0, len(records))
    image = Image()
    image.apply_all(records[:first_count], 0, 1)
    image.mark()
    some_at_a_time(image, records[first_count:], random, first=first_count)
    to = random.randint(first_count, len(records)) - 1
    committed = random.randint(first_count - 1, to)
    image.commit(committed)
    image.undo_to(to)
    same(image, replayed(records[: to + 1]))
    check(image)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_runs_in_an_aborted_transaction_leave_nothing_behind__kip868(seed: int) -> None:
    random = Random(seed)
    before = [*LATEST, *creations(random, 4)]
    inside: list[Message] = [BeginTransactionRecord("t"), *creations(random, 6), AbortTransactionRecord()]
    for number, record in enumerate(inside):
        if isinstance(record, TopicRecord):
            record.name = f"inside{number}"
    image = replayed(before)
    some_at_a_time(image, inside, random, first=len(before))
    assert image == replayed(before)
    assert image.offset == len(before) + len(inside) - 1
    assert image.uncommitted_change_count == 0
    check(image)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_a_loaded_snapshot_sets_the_offset_of_its_end(seed: int) -> None:
    image = replayed(history(seed, 150))
    loaded = Image()
    records = [record.message for record in image.records()]
    for at in range(0, len(records), 16):
        loaded.apply_all(records[at : at + 16], 999, 7, of_snapshot=True)
    assert loaded == image
    assert (loaded.offset, loaded.epoch) == (999, 7) or not records
    check(loaded)


@pytest.mark.parametrize(
    "wrong",
    [
        PartitionRecord(3, b"?" * 16, (1,), (1,), leader=1),
        PartitionRecord(-1, b"t" * 16, (1,), (1,), leader=1),
        PartitionRecord(3, b"t" * 16, (1, 2), (1,), leader=1, directories=(DIRECTORIES[1],)),
        PartitionChangeRecord(0, b"?" * 16, isr=()),
        PartitionChangeRecord(3, b"t" * 16, isr=()),
    ],
    ids=["no topic", "no partition", "a directory is missing", "no topic changed", "no partition changed"],
)
def test_a_contradiction_in_a_run_is_reported_like_that_of_one_record(wrong: Message) -> None:
    good = [PartitionRecord(index, b"t" * 16, (1,), (1,), leader=1) for index in range(3)]
    change = PartitionChangeRecord(1, b"t" * 16, isr=())
    records: list[Message] = [TopicRecord("t", b"t" * 16), *good, change, wrong]
    one_by_one, many = Image(), Image()
    with pytest.raises(ReplayError) as single_error:
        for offset, record in enumerate(records):
            one_by_one.apply(record, offset, 1)
    with pytest.raises(ReplayError) as run_error:
        many.apply_all(records, 0, 1)
    assert str(single_error.value) == str(run_error.value)
    assert one_by_one == many
    assert many.partition_count == 3
    check(many)


def test_equal_partitions_are_one_object() -> None:
    image = Image()
    directories = (DIRECTORIES[1], DIRECTORIES[2])
    partitions = [
        PartitionRecord(index, b"t" * 16, (1, 2), (1, 2), leader=1, directories=directories)
        for index in range(9)
    ]
    image.apply_all([TopicRecord("t", b"t" * 16), *partitions], 0, 1)
    assert len({id(state) for state in image.topics[b"t" * 16].partitions.values()}) == 1


def of_one_topic(count: int) -> list[Message]:
    """A topic of equal partitions."""
    directories = (DIRECTORIES[1], DIRECTORIES[2])
    plain = PartitionRecord(
        0, b"t" * 16, (1, 2), (1, 2), leader=1, partition_epoch=0, directories=directories
    )
    return [TopicRecord("t", b"t" * 16), *[replace(plain, partition_id=index) for index in range(count)]]


def test_partitions_of_all_topics_have_the_same_numbers() -> None:
    image, topic_ids = Image(), [bytes([1]) * 16, bytes([2]) * 16, bytes([3]) * 16]
    image.apply_all([*LATEST, *(TopicRecord(f"t{one[0]}", one) for one in topic_ids)], 0, 1)
    for number, topic_id in enumerate(topic_ids):
        index = int("1000")  # an object of its own, as each that is decoded
        record = PartitionRecord(index, topic_id, (1,), (1,), adding_replicas=(2,) if number else ())
        image.apply_all([record], 10 + number, 1)
    assert len({id(index) for topic in image.topics.values() for index in topic.partitions}) == 1


def test_equal_partitions_with_equal_isr_changes_stay_one_object() -> None:
    image = Image()
    image.apply_all(of_one_topic(9), 0, 1)
    for offset, isr in ((10, (1,)), (19, (1, 2)), (28, (2, 1))):
        changes = [PartitionChangeRecord(index, b"t" * 16, isr=isr) for index in range(9)]
        image.apply_all(changes[:5], offset, 1)
        image.apply_all(changes[5:], offset + 5, 1)
        assert len({id(state) for state in image.topics[b"t" * 16].partitions.values()}) == 1
        assert image.topics[b"t" * 16].partitions[8].isr == isr


def test_equal_partitions_that_get_the_same_leader_stay_one_object() -> None:
    """A restart of a broker takes the leader of each of its partitions away, and elects it again."""
    image = Image()
    image.apply_all(of_one_topic(9), 0, 1)
    for offset, leader in ((10, -1), (19, 1), (28, 2)):
        changes = [PartitionChangeRecord(index, b"t" * 16, leader=leader) for index in range(9)]
        image.apply_all(changes, offset, 1)
        states = image.topics[b"t" * 16].partitions.values()
        assert len({id(state) for state in states}) == 1
        assert {state.leader for state in states} == {leader}
    other = PartitionChangeRecord(0, b"t" * 16, leader=1, isr=(1,))
    image.apply_all([other, PartitionChangeRecord(1, b"t" * 16, leader=1)], 37, 1)
    first, second, *_ = image.topics[b"t" * 16].partitions.values()
    assert first.isr == (1,) and second.isr == (1, 2)


def test_the_number_of_remembered_partitions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EqualPartitions, "MAX_STATES", 8)
    image = Image()
    image.apply_all(of_one_topic(1), 0, 1)
    known = []
    for number in range(100):
        image.apply_all([PartitionChangeRecord(0, b"t" * 16, leader=number % 2 + 1)], number + 2, 1)
        known.append(len(image.equal_partitions))
    assert max(known) == 8
    assert image.topics[b"t" * 16].partitions[0].partition_epoch == 100


def test_the_number_of_remembered_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_runs, "MAX_KNOWN", 8)
    image = Image()
    image.apply_all(of_one_topic(1), 0, 1)
    known = []
    for number in range(100):
        change = PartitionChangeRecord(0, b"t" * 16, isr=(1, 2) if number % 2 else (1,))
        image.apply_all([change], number + 2, 1)
        known.append(len(image.known_changes))
    assert max(known) == 8
    assert image.topics[b"t" * 16].partitions[0].partition_epoch == 100


def test_a_run_of_changed_isrs_has_one_journal_entry_per_record() -> None:
    image = Image()
    image.apply_all(of_one_topic(9), 0, 1)
    image.mark()
    image.apply_all([PartitionChangeRecord(index, b"t" * 16, isr=(1,)) for index in range(9)], 10, 1)
    assert image.uncommitted_change_count == 2 + 9
    image.undo_to(14)
    assert image.offset == 14
    assert [state.isr for state in image.topics[b"t" * 16].partitions.values()] == [(1,)] * 5 + [(1, 2)] * 4


def test_remembering_pauses_if_replica_lists_hardly_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPartitions, "MAX_STATES", 8)
    monkeypatch.setattr(KnownPartitions, "REST_PARTITIONS", 100)
    image = Image()
    image.apply_all([TopicRecord("t", b"t" * 16)], 0, 1)
    remembered = []
    for index in range(300):
        replicas = (index, index + 1)
        record = PartitionRecord(index, b"t" * 16, replicas, replicas, leader=index)
        image.apply_all([record], index + 1, 1)
        remembered.append(len(image.known_partitions.by_replicas))
    assert max(remembered) == 8
    assert 50 < remembered.count(0) < 300
