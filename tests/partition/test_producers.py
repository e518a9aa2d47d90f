"""Sequences, epochs and transactions of producers, one rule a test; Kafka's own log judges them in the
oracle's."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.partition import Produced
from kraftd.partition.producers import NO_GUARD, ProducerStates
from kraftd.partition.validation import ProduceRefusal
from kraftd.wire.batch import read_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import MAX_SEQUENCE, build_records_batch
from testkit.random_batches import NOW_MS
from tests.partition.places import Place

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
DAY_MS = 86_400_000


def of(producer: int, epoch: int, sequence: int, count: int = 1, *, transactional: bool = False) -> bytes:
    rows = [(NOW_MS, b"k", b"v", [])] * count
    attributes = 16 if transactional else 0
    return bytes(
        build_records_batch(
            rows, attributes=attributes, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )
    )


def marker(producer: int, epoch: int, kind: int = 0) -> bytes:
    rows = [(NOW_MS, bytes((0, 0, 0, kind)), bytes(6), [])]
    return bytes(build_records_batch(rows, attributes=48, producer_id=producer, producer_epoch=epoch))


def led(**config: Any) -> Place:
    place = Place(PartitionConfig(**config))
    place.lead()
    return place


def outcome(found: object) -> ErrorCode | int:
    """The base offset, or the error."""
    if isinstance(found, ProduceRefusal):
        return found.error
    assert isinstance(found, Produced) and found.append is not None, "a duplicate"
    return found.base_offset


def verify(place: Place, producer: int, epoch: int, sequence: int, *, bump: bool = False) -> int:
    header = read_batch(of(producer, epoch, sequence, transactional=True)).header
    guard = place.partition.start_verification(header, place.now_ms, supports_epoch_bump=bump)
    assert not isinstance(guard, ErrorCode)
    return int(guard)


def guarded(place: Place, guard: int, producer: int, epoch: int, sequence: int) -> ErrorCode | int:
    return outcome(place.produce(of(producer, epoch, sequence, transactional=True), guard=guard))


def test_a_producer_without_state_begins_with_any_sequence__kip360() -> None:
    place = led()
    assert outcome(place.produce(of(5, 2, 77))) == 0
    assert outcome(place.produce(of(5, 2, 79))) is OUT_OF_ORDER
    assert outcome(place.produce(of(5, 2, 78))) == 1


def test_a_new_epoch_begins_with_sequence_0_and_has_no_duplicates_of_the_old() -> None:
    place = led()
    assert outcome(place.produce(of(5, 0, 0))) == 0
    assert outcome(place.produce(of(5, 1, 1))) is OUT_OF_ORDER
    assert outcome(place.produce(of(5, 1, 0))) == 1
    assert outcome(place.produce(of(5, 0, 1))) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_go_on_at_0_after_the_largest() -> None:
    place = led()
    assert outcome(place.produce(of(5, 0, MAX_SEQUENCE - 1))) == 0
    assert outcome(place.produce(of(5, 0, MAX_SEQUENCE))) == 1
    assert outcome(place.produce(of(5, 0, 1))) is OUT_OF_ORDER
    assert outcome(place.produce(of(5, 0, 0, count=3))) == 2
    again = place.produce(of(5, 0, MAX_SEQUENCE))
    assert isinstance(again, Produced) and again.append is None and again.base_offset == 1


def test_idle_producers_are_forgotten_at_their_expiration_and_not_before() -> None:
    place = led()
    place.produce(of(5, 0, 0))
    assert place.partition.expire_producers(NOW_MS + DAY_MS - 1) == 0
    assert place.partition.expire_producers(NOW_MS + DAY_MS) == 1
    assert outcome(place.produce(of(5, 0, 9))) == 1


def test_a_producer_in_a_transaction_is_not_forgotten() -> None:
    place = led(verifies_transactions=False)
    place.produce(of(5, 0, 0, transactional=True))
    assert place.partition.expire_producers(NOW_MS + 9 * DAY_MS) == 0
    limit_ms = NOW_MS + 900_000 + 300_000
    assert not place.partition.has_late_transaction(limit_ms)
    assert place.partition.has_late_transaction(limit_ms + 1)


def test_the_last_stable_offset_of_an_aborted_transaction_is_the_next_open_ones() -> None:
    place = led(verifies_transactions=False)
    place.produce(of(5, 0, 0, transactional=True))
    place.produce(of(6, 0, 0, transactional=True))
    place.produce(of(7, 0, 0, transactional=True))
    assert place.partition.last_stable_offset == 0
    place.append_own(marker(5, 0))
    assert (place.aborted[0].first_offset, place.aborted[0].last_offset) == (0, 3)
    assert place.aborted[0].last_stable_offset == place.partition.last_stable_offset == 1
    place.append_own(marker(7, 0))
    place.append_own(marker(6, 0, kind=1))
    assert [each.producer_id for each in place.aborted] == [5, 7]
    assert place.partition.last_stable_offset == 6


def test_a_transactional_batch_shows_the_guard_of_its_verification__kip890() -> None:
    place = led()
    assert guarded(place, NO_GUARD, 5, 0, 0) is ErrorCode.INVALID_TXN_STATE
    guard = verify(place, 5, 0, 0)
    assert guarded(place, guard + 1, 5, 0, 0) is ErrorCode.INVALID_TXN_STATE
    assert guarded(place, guard, 5, 0, 0) == 0
    place.append_own(marker(5, 0))
    assert guarded(place, guard, 5, 0, 1) is ErrorCode.INVALID_TXN_STATE, "a guard is of one transaction"


def test_while_a_batch_is_verified_a_later_one_is_refused() -> None:
    place = led()
    guard = verify(place, 5, 0, 5)
    assert verify(place, 5, 0, 3) == guard
    assert guarded(place, guard, 5, 0, 4) is OUT_OF_ORDER
    assert guarded(place, guard, 5, 0, 3) == 0


def test_a_higher_epoch_begins_its_verification_anew() -> None:
    place = led()
    verify(place, 5, 0, 0)
    guard = verify(place, 5, 1, 4)
    assert guarded(place, guard, 5, 1, 4) == 0


def test_version_2_transactions_of_an_unknown_producer_begin_at_sequence_0() -> None:
    place = led()
    guard = verify(place, 5, 0, 3, bump=True)
    assert guarded(place, guard, 5, 0, 3) is OUT_OF_ORDER
    verify(place, 5, 0, 0, bump=True)
    assert guarded(place, guard, 5, 0, 0) == 0


def test_a_marker_leaves_what_the_next_transaction_has_begun_to_verify() -> None:
    place = led()
    guarded(place, verify(place, 5, 0, 0, bump=True), 5, 0, 0)
    guard = verify(place, 5, 1, 0, bump=True)
    assert isinstance(place.append_own(marker(5, 1), transaction_version=2), Produced)
    assert guarded(place, guard, 5, 1, 0) == 2


def test_verifications_end_at_the_expiration_of_producers() -> None:
    place = led()
    guard = verify(place, 5, 0, 0)
    place.partition.expire_producers(NOW_MS + DAY_MS)
    assert guarded(place, guard, 5, 0, 0) is ErrorCode.INVALID_TXN_STATE


def test_open_transactions_of_a_snapshot_are_in_order_of_their_offsets() -> None:
    states = ProducerStates()
    entries = [
        SnapshotEntry(each, 0, 0, 30, 0, NOW_MS, 0, start) for each, start in ((5, 20), (6, 10), (7, -1))
    ]
    states.load(entries, 31, PartitionConfig(), NOW_MS)
    assert states.first_unstable_offset() == 10
    assert states.snapshot() == entries
    states.load(entries, 31, PartitionConfig(), NOW_MS + DAY_MS)
    assert [each.producer_id for each in states] == [5, 6], "one outside of a transaction has expired"


def test_after_a_reload_what_is_replicated_is_stable() -> None:
    place = led(verifies_transactions=False)
    place.produce(of(5, 0, 0, transactional=True))
    place.append_own(marker(5, 0))
    place.produce(of(6, 0, 0))
    place.truncate(3)
    assert place.partition.last_stable_offset == place.partition.high_watermark == 3


def test_deleted_records_of_an_open_transaction_are_stable() -> None:
    place = led(verifies_transactions=False)
    place.produce(of(5, 0, 0, count=4, transactional=True))
    place.settle(place.partition.move_log_start(2))
    assert (place.partition.last_stable_offset, place.partition.high_watermark) == (2, 4)


def test_the_next_batch_of_a_producer_is_noted_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    usual, general = led(), led()
    for _ in range(400):
        producer, epoch = random.randrange(2), random.choice((0, 0, 0, 0, 0, 1))
        entry = usual.partition.producers.entries.get(producer)
        last = MAX_SEQUENCE - 3 if entry is None else entry.last_sequence
        sequence = random.choice((0, last, *(6 * [last + 1 if last < MAX_SEQUENCE else 0])))
        data = of(producer, epoch, sequence, random.randrange(1, 4), transactional=random.random() < 0.05)
        is_undone = random.random() < 0.1
        found = _produced(usual, data, is_undone)
        with monkeypatch.context() as patch:
            patch.setattr(ProducerStates, "follows", lambda self, header: False)
            expected = _produced(general, data, is_undone)
        assert repr(found) == repr(expected)
        one, other = usual.partition.producers, general.partition.producers
        assert one.entries == other.entries and one.end_offset == other.end_offset


def _produced(place: Place, data: bytes, is_undone: bool) -> object:
    """What a partition says of a batch, which is then written or not."""
    found = place.partition.produce(bytearray(data), 12, -1, place.now_ms)
    if is_undone and isinstance(found, Produced):
        place.partition.append_failed(found.base_offset)
    else:
        place.finish(found)
    return found
