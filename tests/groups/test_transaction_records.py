"""What the records of a transactional id say, step by step, and what a broker that reads them knows then."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.groups.effects import PartitionFailed, PartitionLoaded
from kraftd.groups.events import PartitionResigned
from kraftd.groups.records import encode_record
from kraftd.groups.transactions.records import transaction_record
from kraftd.groups.transactions.shard import answer_to_failed_write
from kraftd.groups.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from kraftd.groups.transactions.transaction import MAX_EPOCH, Transaction
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.transaction_log_value import TransactionLogValue
from kraftd.wire.error_code import ErrorCode, error_name
from tests.groups.transaction_desk import TIMEOUT_MS, V1, V2, TransactionDesk, begun

PLACES = frozenset((("orders", 0), ("orders", 2)))


def test_each_record_has_the_ids_epochs_and_times_of_its_step() -> None:
    desk = TransactionDesk()
    start_ms = desk.now_ms
    producer = begun(desk, 0)
    desk.now_ms += 10
    desk.add(producer, 2)
    desk.now_ms += 10
    desk.holds_markers = desk.is_held = True
    desk.send(EndTxnRequest("id", *producer, True), 5)
    desk.now_ms += 5
    desk.release()  # the decision is committed
    desk.now_ms += 5
    desk.write_markers()
    desk.now_ms += 10
    desk.ask(InitProducerIdRequest("id", 5_000), 5)
    empty = Transaction(
        101, previous_producer_id=101, producer_epoch=0, timeout_ms=TIMEOUT_MS, last_update_ms=start_ms
    )
    ongoing = replace(empty, state=ONGOING, partitions=PLACES, start_ms=start_ms)
    prepared = replace(ongoing, state=PREPARE_COMMIT, producer_epoch=1, client_version=2)
    prepared = replace(prepared, last_update_ms=start_ms + 20)
    assert desk.states() == [
        empty,
        replace(ongoing, partitions=frozenset((("orders", 0),))),
        replace(ongoing, last_update_ms=start_ms + 10),
        prepared,
        replace(prepared, state=COMPLETE_COMMIT, partitions=frozenset(), last_update_ms=start_ms + 25),
        replace(empty, producer_epoch=2, timeout_ms=5_000, last_update_ms=start_ms + 40, client_version=2),
    ]


def test_the_records_of_the_last_epoch_name_the_next_producer_id() -> None:
    desk = TransactionDesk()
    begun(desk)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=MAX_EPOCH - 1)
    desk.end((101, MAX_EPOCH - 1), False)
    ids = [(one.previous_producer_id, one.producer_id, one.next_producer_id) for one in desk.states()[-2:]]
    assert ids == [(101, 101, 102), (101, 102, -1)]
    assert [one.state for one in desk.states()[-2:]] == [PREPARE_ABORT, COMPLETE_ABORT]
    desk.reload()
    assert desk.ids()["id"].current.previous_producer_id == 101
    assert desk.end((101, MAX_EPOCH - 1), False).producer_id == 102  # the answer was lost


def test_a_fence_forgets_from_which_epoch_its_producer_went_on() -> None:
    desk = TransactionDesk(V1)
    first = desk.init()
    second = desk.init(expected=(first.producer_id, 0))
    assert second.producer_epoch == 1 and desk.ids()["id"].current.last_producer_epoch == 0
    desk.add((first.producer_id, 1))
    desk.holds_markers = True
    assert desk.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert desk.ids()["id"].current.last_producer_epoch == -1


@pytest.mark.parametrize("version", [V1, V2])
def test_a_marker_is_of_the_version_that_its_producer_uses(version: int) -> None:
    desk = TransactionDesk(version)
    desk.holds_markers = True
    desk.end(begun(desk), True, version=5 if version else 4)
    (sent,) = desk.held
    assert (sent.transaction_version, sent.is_commit) == (version, True)


def test_several_ids_fail_and_are_tried_again_each_by_itself() -> None:
    desk = TransactionDesk()
    producers = {}
    for id in ("a", "b"):
        producers[id] = desk.init(id).producer_id, 0
        desk.add(producers[id], id=id)
    desk.marker_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for id, producer in producers.items():
        desk.end(producer, True, id)
    desk.marker_error = ErrorCode.NONE
    desk.holds_markers = True
    desk.wait(1_000)
    assert [sent.transactional_id for sent in desk.held] == ["a", "b"]
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.write_markers()
    desk.failure = None
    desk.wait(1_000)
    assert [desk.states(id)[-1].state for id in ("a", "b")] == [COMPLETE_COMMIT] * 2


def test_a_broker_that_takes_over_knows_the_ids_and_the_oldest_transactions() -> None:
    desk = TransactionDesk()
    for id in ("z", "a", "m"):
        desk.add((desk.init(id).producer_id, 0), id=id)
        desk.now_ms += 10
    desk.add((101, 0), 1, id="z")  # the last record is of the oldest one
    desk.reload()
    assert list(desk.shard().ongoing) == ["z", "a", "m"]
    loaded = [note for note in desk.notes if isinstance(note, PartitionLoaded)][-1]
    assert (loaded.count, loaded.record_count) == (3, 7)


def test_a_state_that_is_none_is_named_where_the_partition_fails() -> None:
    desk = TransactionDesk()
    begun(desk)
    record = transaction_record("id", desk.ids()["id"].current, V2)
    assert isinstance(record.value, TransactionLogValue)
    record.value.transaction_status = 9
    desk.logs[0].append((encode_record(record), -1))
    desk.commit()
    desk.reload()
    (failed,) = [note for note in desk.notes if isinstance(note, PartitionFailed)]
    assert failed.reason == "UnreadableRecord: offset 2: transaction state 9, which is unknown"


def test_an_id_whose_first_record_was_not_written_is_as_young_as_others() -> None:
    desk = TransactionDesk()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.init()
    desk.failure = None
    desk.wait(2 * desk.transaction_config.transaction_remove_expired_transaction_cleanup_interval_ms)
    assert desk.ids()["id"].current.state is EMPTY


def test_a_fence_that_waits_for_a_producer_id_is_refused_once_another_broker_leads() -> None:
    desk = TransactionDesk()
    begun(desk)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=MAX_EPOCH - 1)
    desk.holds_ids = True
    number = desk.send(InitProducerIdRequest("id", TIMEOUT_MS), 5)
    desk.step(PartitionResigned(0))
    desk.give_ids()
    answer: Any = desk.answers[number]
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_NOT_AVAILABLE"),
        ("NOT_ENOUGH_REPLICAS", "COORDINATOR_NOT_AVAILABLE"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "COORDINATOR_NOT_AVAILABLE"),
        ("REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE"),
        ("NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR"),
        ("KAFKA_STORAGE_ERROR", "NOT_COORDINATOR"),
        ("MESSAGE_TOO_LARGE", "UNKNOWN_SERVER_ERROR"),
        ("RECORD_LIST_TOO_LARGE", "UNKNOWN_SERVER_ERROR"),
        ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
def test_a_producer_learns_why_its_record_was_not_written(error: str, expected: str) -> None:
    assert error_name(answer_to_failed_write(ErrorCode[error])) == expected
