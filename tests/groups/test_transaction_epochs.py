"""The last epochs of a producer id, and fences whose records are not written: what each side sees of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.groups.transactions.states import COMPLETE_ABORT, EMPTY, ONGOING, PREPARE_ABORT
from kraftd.groups.transactions.transaction import MAX_EPOCH
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.transaction_desk import TIMEOUT_MS, V1, V2, TransactionDesk, begun

NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
CONCURRENT, INVALID = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
LAST = MAX_EPOCH - 1  # that a producer is given


def at_the_last_epoch(version: int) -> tuple[TransactionDesk, tuple[int, int]]:
    """A producer with a transaction under the last epoch of its id."""
    desk = TransactionDesk(version)
    producer_id, _ = begun(desk)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=LAST)
    return desk, (producer_id, LAST)


def producer_of(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_what_times_out_under_the_last_epoch_ends_under_another_id__kip890() -> None:
    desk, producer = at_the_last_epoch(V2)
    desk.holds_markers = True
    desk.wait(TIMEOUT_MS + 20_000)
    (sent,) = desk.held
    assert (sent.producer_id, sent.producer_epoch) == (producer[0], MAX_EPOCH)
    assert desk.states()[-1].state is PREPARE_ABORT
    assert desk.end(producer, False).error_code == CONCURRENT
    desk.write_markers()
    current = desk.ids()["id"].current
    assert (current.state, current.producer_epoch) == (COMPLETE_ABORT, 0)
    assert current.producer_id != producer[0] and current.previous_producer_id == producer[0]
    # What the producer asks for late is known as the same end, and says how it goes on.
    assert producer_of(desk.end(producer, False)) == (NONE, current.producer_id, 0)
    assert desk.end(producer, True).error_code == INVALID
    assert desk.add(producer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer_of(desk.init(expected=producer)) == (NONE, current.producer_id, 0)


@pytest.mark.parametrize("version", [V1, V2])
def test_a_fence_under_the_last_epoch_is_followed_by_another_id(version: int) -> None:
    desk, producer = at_the_last_epoch(version)
    assert desk.init().error_code == CONCURRENT
    assert [marker[1:] for marker in desk.markers] == [(producer[0], MAX_EPOCH, False)]
    found = desk.init()
    assert (found.error_code, found.producer_epoch) == (NONE, 1 if version == V2 else 0)
    assert found.producer_id != producer[0]
    late = desk.end(producer, False, version=5 if version == V2 else 4)
    assert late.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [V1, V2])
def test_a_fence_that_is_not_written_raises_the_epoch_no_further(version: int) -> None:
    desk = TransactionDesk(version)
    producer_id, epoch = begun(desk)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        assert desk.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    entry = desk.ids()["id"]
    # Before v2 the producer is fenced at once; with v2 it goes on, as the record would raise the epoch.
    assert (entry.current.state, entry.current.producer_epoch) == (ONGOING, epoch + (version == V1))
    desk.failure = None
    assert desk.init().error_code == CONCURRENT
    assert desk.markers == [(("orders", 0), producer_id, epoch + 1, False)]
    assert producer_of(desk.init()) == (NONE, producer_id, epoch + 2)


def test_a_producer_goes_on_from_the_last_epoch_only_if_it_is_its_own__kip360() -> None:
    desk, producer = at_the_last_epoch(V1)
    assert desk.end(producer, True, version=4).error_code == NONE
    assert desk.init(expected=(producer[0], LAST - 1)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    found = desk.init(expected=producer)
    assert (found.error_code, found.producer_epoch) == (NONE, 0) and found.producer_id != producer[0]
    # The answer was lost: it is given again, until another producer begins.
    assert producer_of(desk.init(expected=producer)) == producer_of(found)
    assert desk.init(expected=(producer[0], LAST - 1)).error_code == FENCED
    assert producer_of(desk.init()) == (NONE, found.producer_id, 1)
    assert desk.init(expected=producer).error_code == FENCED
    assert desk.ids()["id"].current.state is EMPTY


def test_nothing_is_committed_under_the_epoch_that_only_fences__kip890() -> None:
    desk, (producer_id, _) = at_the_last_epoch(V2)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=MAX_EPOCH)
    assert desk.end((producer_id, MAX_EPOCH), True).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert entry.current.state is ONGOING and entry.pending is None
    assert desk.end((producer_id, MAX_EPOCH), False).error_code == NONE


def test_the_epoch_before_the_last_is_followed_by_the_last() -> None:
    desk, (producer_id, _) = at_the_last_epoch(V2)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=LAST - 1)
    assert producer_of(desk.end((producer_id, LAST - 1), True)) == (NONE, producer_id, LAST)
    entry.current = replace(entry.current, producer_epoch=LAST - 1)
    assert producer_of(desk.init()) == (NONE, producer_id, LAST)


@pytest.mark.parametrize("epoch", [0, 5, LAST])
def test_another_producer_id_is_known_by_the_last_epoch_of_the_former_one(epoch: int) -> None:
    """A producer that has missed the answer with its new id goes on; epochs before the last say nothing."""
    desk, producer = at_the_last_epoch(V2)
    new = desk.end(producer, False)
    former = producer[0], epoch
    if epoch == LAST:
        assert producer_of(desk.end(former, False)) == producer_of(new)
        assert producer_of(desk.init(expected=former)) == producer_of(new)
    else:
        assert desk.end(former, False).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert desk.init(expected=former).error_code == FENCED


@pytest.mark.parametrize("whose", [1, 2])
def test_the_last_epoch_of_a_stranger_is_that_of_no_producer(whose: int) -> None:
    desk, (producer_id, _) = at_the_last_epoch(V1)
    desk.end((producer_id, LAST), True, version=4)
    assert desk.init(expected=(producer_id + whose, LAST)).error_code == FENCED


@pytest.mark.parametrize(("level", "next_level"), [(V1, V2), (V2, V1)])
def test_a_fence_is_of_the_level_at_which_it_began(level: int, next_level: int) -> None:
    """Another transaction.version is finalized before its record fails: before v2, its epoch was raised."""
    desk = TransactionDesk(level)
    _, epoch = begun(desk)
    desk.is_held = True
    token = desk.send(InitProducerIdRequest("id", TIMEOUT_MS), 5)
    desk.coordinator.transaction_version = next_level  # type: ignore[attr-defined]
    desk.wait(TIMEOUT_MS)
    assert desk.answers[token].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    entry = desk.ids()["id"]
    is_raised = level == V1
    assert (entry.current.producer_epoch, entry.has_failed_fence) == (epoch + is_raised, is_raised)
