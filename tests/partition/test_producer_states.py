"""The state of producers is undone, replayed, kept and loaded; and the texts of what it refuses."""

from __future__ import annotations

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.producer_entry import Origin, ProducerError
from kraftd.partition.producers import NO_GUARD, CompletedTransaction, ProducerStates
from kraftd.wire.batch import Batch, read_batch
from kraftd.wire.compaction import without_records
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import MAX_SEQUENCE
from testkit.random_batches import NOW_MS
from tests.partition.test_producers import DAY_MS, OUT_OF_ORDER, guarded, led, marker, of, outcome, verify

CONFIG = PartitionConfig(verifies_transactions=False)
COMMIT = 1


def at(offset: int, data: bytes) -> Batch:
    return read_batch(offset.to_bytes(8, "big") + data[8:])


def append(
    states: ProducerStates, offset: int, data: bytes, guard: int = NO_GUARD, version: int = 0
) -> CompletedTransaction | None:
    batch = at(offset, data)
    config = CONFIG if guard == NO_GUARD else PartitionConfig()
    origin = Origin.COORDINATOR if batch.header.is_control else Origin.CLIENT
    return states.append(batch.header, batch.view, origin, config, guard=guard, transaction_version=version)


def transactional(producer: int, sequence: int = 0, epoch: int = 0) -> bytes:
    return of(producer, epoch, sequence, transactional=True)


def test_what_was_not_written_is_undone_with_all_that_it_changed() -> None:
    states = ProducerStates(7)
    assert (states.end_offset, states.is_empty, len(states)) == (7, True, 0)
    guard = states.start_verification(at(7, transactional(5)).header, NOW_MS, supports_epoch_bump=False)
    append(states, 7, transactional(5), guard)
    append(states, 8, transactional(6))
    assert append(states, 9, marker(5, 0)) == CompletedTransaction(5, 7, 9, True, 8)
    before = states.snapshot(9)
    states.roll_back(9)
    assert (states.end_offset, states.first_unstable_offset()) == (9, 7)
    assert states.snapshot() == before
    assert append(states, 9, marker(5, 0, COMMIT)) == CompletedTransaction(5, 7, 9, False, 8)
    assert states.first_unstable_offset() == 7
    states.roll_back(7)
    assert (states.end_offset, states.first_unstable_offset(), len(states)) == (7, None, 0)
    append(states, 7, transactional(5), guard)
    states.roll_back(7)
    states.expire(CONFIG, NOW_MS + DAY_MS)
    assert states.is_empty


def test_what_was_written_is_not_undone() -> None:
    for end_offset, left in ((0, []), (1, [5]), (2, [5, 6])):
        states = ProducerStates()
        append(states, 0, of(5, 0, 0))
        append(states, 1, of(6, 0, 0))
        states.written(end_offset)
        states.roll_back(0)
        assert [one.producer_id for one in states] == left


def test_a_completed_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    states = ProducerStates()
    append(states, 0, transactional(5))
    append(states, 1, transactional(6))
    append(states, 2, marker(5, 0))
    for high_watermark, first_unstable in ((2, 0), (3, 1)):
        states.replicated(high_watermark)
        assert states.first_unstable_offset() == first_unstable


def test_batches_of_the_log_are_replayed() -> None:
    states = ProducerStates()
    assert states.replay(at(0, transactional(0))) is None
    assert states.replay(at(1, of(-1, -1, -1))) is None
    assert ([one.producer_id for one in states], states.end_offset) == ([0], 2)
    empty = without_records(at(2, marker(3, 0)).header)
    assert states.replay(read_batch(empty)) is None, "it was cleaned with its transaction"
    completed = CompletedTransaction(0, 0, 3, True, 4)
    assert states.replay(at(3, marker(0, 0))) == completed
    states.roll_back(0)
    assert [one.producer_id for one in states] == [0, 3]


def test_a_snapshot_has_what_was_before_its_offset() -> None:
    states = ProducerStates()
    append(states, 0, transactional(5))
    append(states, 1, of(6, 0, 0))
    append(states, 2, marker(5, 0))
    before = SnapshotEntry(5, 0, 0, 0, 0, NOW_MS, -1, 0)
    assert states.snapshot(1) == [before]
    assert states.snapshot(2) == [before, SnapshotEntry(6, 0, 0, 1, 0, NOW_MS, -1, -1)]
    assert states.snapshot()[0] == before._replace(coordinator_epoch=0, current_txn_first_offset=-1)
    assert states.snapshot() == states.snapshot(3)
    append(states, 3, marker(7, 2))
    assert states.snapshot()[2] == SnapshotEntry(7, 2, -1, -1, 0, NOW_MS, 0, -1)
    states.load([before], 1, CONFIG, NOW_MS)
    assert (states.end_offset, states.first_unstable_offset(), states.snapshot()) == (1, 0, [before])
    states.roll_back(0)
    assert states.snapshot() == [before]
    states.load([], 9, CONFIG, NOW_MS)
    assert (states.end_offset, states.first_unstable_offset(), states.is_empty) == (9, None, True)


@pytest.mark.parametrize(("last_ms", "is_late"), [(-1, False), (0, False), (1, True), (NOW_MS, False)])
def test_a_transaction_without_a_time_is_not_late(last_ms: int, is_late: bool) -> None:
    states = ProducerStates()
    assert states.has_late_transaction(CONFIG, NOW_MS) is False
    states.load([SnapshotEntry(5, 0, 0, 0, 0, last_ms, 0, 0)], 1, CONFIG, NOW_MS)
    assert states.has_late_transaction(CONFIG, NOW_MS) is is_late


def test_what_is_verified_later_does_not_raise_the_earliest_sequence() -> None:
    place = led()
    guard = verify(place, 5, 0, 5)
    assert verify(place, 5, 0, 7) == guard
    assert guarded(place, guard, 5, 0, 7) is OUT_OF_ORDER
    place.partition.expire_producers(NOW_MS + DAY_MS - 1)
    assert guarded(place, guard, 5, 0, 5) == 0


def test_a_batch_outside_of_transactions_leaves_a_verification() -> None:
    place = led()
    guard = verify(place, 5, 0, 1)
    assert outcome(place.produce(of(5, 0, 0))) == 0
    assert guarded(place, guard, 5, 0, 1) == 1


def test_a_duplicate_has_the_same_first_and_last_sequence() -> None:
    place = led()
    assert outcome(place.produce(of(5, 0, 0, count=3))) == 0
    for sequence, count in ((0, 2), (1, 2), (0, 4)):
        assert outcome(place.produce(of(5, 0, sequence, count=count))) is OUT_OF_ORDER


def test_a_coordinator_may_write_markers_of_its_epoch_again() -> None:
    states = ProducerStates()
    for offset in (0, 2, 4):
        append(states, offset, transactional(5, sequence=offset // 2))
        assert append(states, offset + 1, marker(5, 0)) is not None


def by_coordinator(epoch: int) -> bytes:
    return bytes(build_end_marker(5, 1, is_commit=True, coordinator_epoch=epoch, timestamp_ms=NOW_MS))


@pytest.mark.parametrize(
    ("data", "version", "text"),
    [
        (of(5, 0, 0), 0, "INVALID_PRODUCER_EPOCH: epoch 0 of producer 5 is older than 1"),
        (
            of(5, 1, 9), 0,
            "OUT_OF_ORDER_SEQUENCE_NUMBER: sequence 9 of producer 5 at offset 4: 0 was the last",
        ),
        (
            of(5, 2, 9), 0,
            "OUT_OF_ORDER_SEQUENCE_NUMBER: sequence 9 of producer 5 at offset 4: "
            "a new epoch after 1 begins with 0",
        ),
        (of(5, 1, 1), 0, "INVALID_TXN_STATE: producer 5 has a transaction, and this is none of it"),
        (marker(5, 0), 0, "INVALID_PRODUCER_EPOCH: epoch 0 of producer 5 is older than 1"),
        (marker(5, 1), 2, "INVALID_PRODUCER_EPOCH: epoch 1 of producer 5 is older than 1"),
        (
            by_coordinator(2), 0,
            "TRANSACTION_COORDINATOR_FENCED: coordinator epoch 2 of producer 5 is older than 3",
        ),
        (marker(5, 1, kind=7), 0, None),
    ],
)  # fmt: skip
def test_a_refusal_names_what_was_known(data: bytes, version: int, text: str | None) -> None:
    states = ProducerStates()
    states.load([SnapshotEntry(5, 1, 0, 3, 0, NOW_MS, 3, 2)], 4, CONFIG, NOW_MS)
    with pytest.raises(ProducerError) as raised:
        append(states, 4, data, version=version)
    assert text is None or str(raised.value) == text
    assert raised.value.text in str(raised.value)
    if text is None:
        assert raised.value.error is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("bump", [True, False])
def test_a_producer_that_is_being_verified_has_no_later_sequence(bump: bool) -> None:
    states = ProducerStates()
    header = at(0, transactional(5)).header
    guard = states.start_verification(header, NOW_MS, supports_epoch_bump=bump)
    expected = "0 is expected of a producer without state" if bump else "0 is the earliest that was seen"
    with pytest.raises(ProducerError, match=f"sequence 3 of producer 5 at offset 0: {expected}"):
        append(states, 0, transactional(5, sequence=3), guard)
    with pytest.raises(ProducerError, match="the record is not part of an ongoing transaction"):
        append(states, 0, transactional(6), guard)


def test_a_usual_batch_is_noted_in_one_call_and_no_other() -> None:
    states = ProducerStates()
    for producer, last in ((5, 0), (6, MAX_SEQUENCE - 2)):
        states.load([*states.snapshot(), SnapshotEntry(producer, 0, last, 0, 0, NOW_MS, 0, -1)], 1, CONFIG, 0)
    for other in (
        of(4, 0, 0),
        of(5, 0, 2),
        of(5, 1, 1),
        transactional(5, 1),
        of(6, 0, MAX_SEQUENCE - 1, count=3),
    ):
        assert states.follows(at(1, other).header) is False
    assert states.end_offset == 1
    assert states.follows(at(1, of(5, 0, 1, count=3)).header) is True
    assert states.follows(at(4, of(6, 0, MAX_SEQUENCE - 1, count=2)).header) is True
    assert (states.end_offset, [one.last_sequence for one in states]) == (6, [3, MAX_SEQUENCE])
    states.roll_back(4)
    assert (states.end_offset, [one.last_sequence for one in states]) == (4, [3, MAX_SEQUENCE - 2])


def test_a_batch_outside_of_a_transaction_that_is_verified_is_not_usual() -> None:
    place = led()
    assert outcome(place.produce(of(5, 0, 0))) == 0
    verify(place, 5, 0, 0)
    assert outcome(place.produce(of(5, 0, 1))) is OUT_OF_ORDER


def test_a_producer_has_a_transaction_from_its_first_batch_to_its_marker() -> None:
    states = ProducerStates()
    assert states.has_transaction(5) is False
    for offset, data, has in ((0, transactional(5), True), (1, marker(5, 0), False), (2, of(5, 0, 1), False)):
        append(states, offset, data)
        assert states.has_transaction(5) is has
