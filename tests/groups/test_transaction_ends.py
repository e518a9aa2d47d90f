"""What becomes of transactional ids by themselves: markers and completions written again, and idle ids."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.effects import ReadRecords
from kraftd.groups.events import PartitionElected
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.effects import MarkersAnswered
from kraftd.groups.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
)
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.transaction_desk import TransactionDesk, adding, begun

CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
MINUTE_MS = 60_000
IDLE_MS = 60 * MINUTE_MS
# A broker looks for idle ids every ten minutes.
CONFIG = TransactionConfig(
    transactional_id_expiration_ms=IDLE_MS,
    transaction_abort_timed_out_transaction_cleanup_interval_ms=10 * MINUTE_MS,
    transaction_remove_expired_transaction_cleanup_interval_ms=10 * MINUTE_MS,
)


def test_ids_without_a_transaction_expire_when_they_are_idle_for_long_enough() -> None:
    desk = TransactionDesk(config=CONFIG)
    desk.init("empty")
    for id, is_commit in (("committed", True), ("aborted", False)):
        producer = desk.init(id).producer_id, 0
        assert desk.add(producer, id=id) == desk.end(producer, is_commit, id).error_code == 0
    desk.holds_markers = True
    begun(desk)
    desk.end((104, 0), True)
    desk.wait(IDLE_MS - 1)
    assert set(desk.ids()) == {"empty", "committed", "aborted", "id"}
    desk.wait(1)
    assert set(desk.ids()) == {"id"}
    desk.reload()
    assert set(desk.ids()) == {"id"}
    desk.write_markers()
    desk.wait(IDLE_MS + 10 * MINUTE_MS)  # of the broker that has taken over
    assert not desk.ids()


def test_an_open_transaction_does_not_expire() -> None:
    desk = TransactionDesk(config=CONFIG)
    begun(desk)
    shard = desk.shard()
    desk.now_ms += 2 * IDLE_MS
    shard.state.now_ms = desk.now_ms
    shard.submit(shard.expire())
    desk.flush()
    assert desk.ids()["id"].current.state is ONGOING


def test_an_id_that_expires_is_not_used_until_it_is_gone() -> None:
    desk = TransactionDesk(config=CONFIG)
    first = desk.init()
    desk.is_held = True
    desk.wait(IDLE_MS)
    assert desk.init().error_code == desk.add((first.producer_id, 0)) == CONCURRENT
    assert list(desk.ids()) == ["id"]
    desk.release()
    assert not desk.ids()
    assert desk.init().producer_id == first.producer_id + 1


def test_an_id_whose_tombstone_is_not_written_goes_on() -> None:
    desk = TransactionDesk(config=CONFIG)
    producer = desk.init().producer_id, 0
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.wait(IDLE_MS)
    assert list(desk.ids()) == ["id"]
    desk.failure = None
    assert desk.add(producer) == 0


def test_very_many_ids_expire_in_several_steps_and_batches() -> None:
    config = TransactionConfig(
        transactional_id_expiration_ms=IDLE_MS,
        transaction_remove_expired_transaction_cleanup_interval_ms=IDLE_MS,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=10 * IDLE_MS,
        max_batch_bytes=1_000,
    )
    desk = TransactionDesk(config=config)
    for number in range(1_001):
        desk.init(f"id-{number}")
    desk.wait(IDLE_MS)
    assert len(desk.ids()) == 501
    desk.wait(1)
    assert len(desk.ids()) == 1
    desk.wait(1)
    assert not desk.ids()


@pytest.mark.parametrize("version", [0, 1])
def test_each_fence_of_an_id_raises_the_epoch(version: int) -> None:
    desk = TransactionDesk(version)
    for count in range(1, 4):
        producer = begun(desk)
        assert desk.init().error_code == CONCURRENT
        assert desk.markers[count - 1][1:] == (producer[0], producer[1] + 1, False)
    assert [one.client_version for one in desk.states()] == [0] * len(desk.states())


def test_a_transaction_began_with_its_first_partition_or_with_its_abort() -> None:
    desk = TransactionDesk()
    began_ms = desk.now_ms
    producer_id, epoch = begun(desk)
    desk.now_ms += 50
    desk.add((producer_id, epoch), 1)
    desk.end((producer_id, epoch), True)
    assert [one.start_ms for one in desk.states()] == [-1] + [began_ms] * 4
    desk.now_ms += 50
    assert desk.end((producer_id, epoch + 1), False).error_code == 0
    assert [(one.state, one.start_ms) for one in desk.states()[-1:]] == [(COMPLETE_ABORT, began_ms + 100)]


def test_a_completion_that_is_not_written_is_written_again_after_a_pause() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    desk.holds_markers = True
    desk.end(producer, True)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.write_markers()
    assert desk.states()[-1].state is PREPARE_COMMIT
    desk.failure = None
    next_epoch = producer[0], producer[1] + 1
    for code in (desk.init().error_code, desk.end(next_epoch, True).error_code, desk.add(next_epoch)):
        assert code == CONCURRENT
    desk.wait(99)
    assert desk.states()[-1].state is PREPARE_COMMIT
    desk.wait(1)
    assert desk.states()[-1].state is COMPLETE_COMMIT
    desk.wait(900)
    assert desk.states()[-1].state is COMPLETE_COMMIT
    assert len(desk.markers) == 1


def test_markers_that_failed_are_sent_again_after_a_pause_once() -> None:
    desk = TransactionDesk()
    desk.marker_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    desk.end(begun(desk), True)
    desk.holds_markers = True
    desk.wait(99)
    assert not desk.held
    desk.wait(1)
    (sent,) = desk.held
    assert sent.partitions == (("orders", 0),)
    desk.wait(1_000)
    assert len(desk.held) == 1


def answered(desk: TransactionDesk, sent: Any, **changes: Any) -> None:
    """The answer of all leaders to a SendMarkers, or to one that differs from it."""
    values = {
        "partition": sent.partition,
        "coordinator_epoch": sent.coordinator_epoch,
        "transactional_id": sent.transactional_id,
        "producer_id": sent.producer_id,
        "producer_epoch": sent.producer_epoch,
        "results": dict.fromkeys(sent.partitions, ErrorCode.NONE),
        **changes,
    }
    desk.step(MarkersAnswered(**values))
    desk.flush()


@pytest.mark.parametrize(
    "changes", [{"transactional_id": "gone"}, {"producer_id": 7}, {"producer_epoch": 0}, {"results": {}}]
)
def test_only_answers_of_this_transactions_markers_complete_it(changes: dict[str, Any]) -> None:
    desk = TransactionDesk()
    desk.holds_markers = True
    desk.end(begun(desk), True)
    (sent,) = desk.held
    answered(desk, sent, **changes)
    assert desk.states()[-1].state is PREPARE_COMMIT
    answered(desk, sent)
    answered(desk, sent)  # which comes twice
    assert [one.state for one in desk.states()[-2:]] == [PREPARE_COMMIT, COMPLETE_COMMIT]


def test_a_producer_without_a_transaction_goes_on_at_another_broker() -> None:
    desk = TransactionDesk()
    first = desk.init()
    desk.reload()
    assert desk.ids()["id"].current.state is EMPTY
    assert desk.add((first.producer_id, first.producer_epoch)) == 0


@pytest.mark.parametrize("is_decided", [False, True])
def test_another_coordinator_waits_until_what_it_has_loaded_is_committed(*, is_decided: bool) -> None:
    """Another leader may still truncate it. Then nothing knows of the partitions, or of the decision."""
    desk = TransactionDesk()
    first = desk.init()
    producer = first.producer_id, first.producer_epoch
    if is_decided:
        desk.add(producer)
    desk.is_held = True
    if is_decided:
        desk.send(EndTxnRequest("id", *producer, True), 5)
    else:
        desk.send(adding(producer), 3)
    assert desk.states()[-1].state is (PREPARE_COMMIT if is_decided else ONGOING)
    desk.reload()
    assert desk.add(producer) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not desk.markers
    desk.release()
    if is_decided:
        assert desk.markers and desk.states()[-1].state is COMPLETE_COMMIT
    else:
        assert desk.add(producer) == ErrorCode.NONE


def test_a_partition_is_read_in_pieces_of_the_size_that_is_set() -> None:
    desk = TransactionDesk(config=TransactionConfig(transaction_state_log_load_buffer_size=77))
    desk.init()
    coordinator = desk.new_coordinator()
    (read,) = coordinator.step(PartitionElected(0, 1, 0, 1), desk.now_ms)
    assert isinstance(read, ReadRecords) and read.max_bytes == 77
