"""Transactional ids: which ends are legal, which epochs follow, and what becomes of markers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from kraftd.groups.transactions import coordinator as coordinator_module
from kraftd.groups.transactions.effects import MarkersAnswered
from kraftd.groups.transactions.shard import TransactionShard
from kraftd.groups.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    TRANSITIONS,
)
from kraftd.groups.transactions.transaction import MAX_EPOCH, Transaction
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.transaction_desk import TIMEOUT_MS, V1, V2, TransactionDesk, begun

NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
CONCURRENT, INVALID = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE


def test_a_commit_is_complete_once_every_partition_has_its_marker() -> None:
    desk = TransactionDesk()
    producer = begun(desk, 0, 1)
    desk.holds_markers = True
    answer = desk.end(producer, True)
    assert (answer.error_code, answer.producer_epoch) == (NONE, producer[1] + 1)
    assert desk.add((producer[0], producer[1] + 1)) == CONCURRENT
    assert [one.state for one in desk.states()][-2:] == [ONGOING, PREPARE_COMMIT]
    shard = desk.shard()
    assert (list(shard.ongoing), list(shard.ending)) == ([], ["id"])
    desk.write_markers()
    assert not shard.ending
    epoch = producer[1] + 1
    assert desk.markers == [(("orders", index), producer[0], epoch, True) for index in (0, 1)]
    assert desk.states()[-1].state is COMPLETE_COMMIT
    assert desk.add((producer[0], epoch)) == NONE


def test_a_repeated_end_is_known_by_its_epoch__kip890() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    assert desk.end(producer, True).error_code == NONE
    again = desk.end(producer, True)
    assert (again.error_code, again.producer_epoch) == (NONE, producer[1] + 1)
    assert desk.end(producer, False).error_code == INVALID
    current = producer[0], producer[1] + 1
    assert desk.end(current, True).error_code == INVALID
    assert desk.end(current, False).error_code == NONE  # an abort of what has not begun
    assert desk.end(producer, False).error_code == FENCED


def test_before_v2_an_end_keeps_the_epoch() -> None:
    desk = TransactionDesk(V1)
    producer = begun(desk)
    answer = desk.end(producer, False, version=4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (NONE, -1, -1)
    assert desk.markers == [(("orders", 0), *producer, False)]
    assert desk.end(producer, False, version=4).error_code == NONE
    assert desk.end(producer, True, version=4).error_code == INVALID
    assert desk.end((producer[0], producer[1] + 1), False, version=4).error_code == FENCED
    assert desk.end((producer[0], producer[1] + 1), False, version=1).error_code == 47


@pytest.mark.parametrize("version", [V1, V2])
def test_a_second_producer_fences_the_first(version: int) -> None:
    desk = TransactionDesk(version)
    first = begun(desk)
    assert desk.init().error_code == CONCURRENT
    second = desk.init()
    assert (second.error_code, second.producer_id) == (NONE, first[0])
    assert second.producer_epoch == first[1] + 2
    assert desk.add(first) == FENCED
    assert desk.end(first, True).error_code == FENCED
    assert [marker[3] for marker in desk.markers] == [False]


@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_that_lasts_too_long_is_aborted(version: int) -> None:
    desk = TransactionDesk(version)
    producer = begun(desk)
    desk.wait(TIMEOUT_MS)
    assert not desk.markers
    desk.wait(desk.transaction_config.transaction_abort_timed_out_transaction_cleanup_interval_ms)
    assert desk.markers == [(("orders", 0), producer[0], producer[1] + 1, False)]
    assert desk.end(producer, True).error_code in (FENCED, INVALID)


def test_epochs_that_are_used_up_lead_to_another_producer_id() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=MAX_EPOCH - 1)
    answer = desk.end((producer[0], MAX_EPOCH - 1), True)
    assert (answer.error_code, answer.producer_epoch) == (NONE, 0)
    assert answer.producer_id != producer[0]
    assert desk.markers == [(("orders", 0), producer[0], MAX_EPOCH, True)]
    again = desk.end((producer[0], MAX_EPOCH - 1), True)
    assert (again.error_code, again.producer_id) == (NONE, answer.producer_id)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_markers_that_fail_are_sent_again(error: ErrorCode) -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    desk.marker_error = error
    desk.end(producer, True)
    desk.wait(1_000)
    assert not desk.markers and desk.states()[-1].state is PREPARE_COMMIT
    desk.marker_error = NONE
    desk.wait(1_000)
    assert len(desk.markers) == 1 and desk.states()[-1].state is COMPLETE_COMMIT


def test_a_marker_that_fails_is_sent_again_while_other_leaders_are_silent() -> None:
    desk = TransactionDesk()
    desk.holds_markers = True
    desk.end(begun(desk, 0, 1, 2), True)
    (sent,) = desk.held
    desk.held.clear()

    def answer(**errors: ErrorCode) -> None:
        results = {("orders", int(place[1:])): error for place, error in errors.items()}
        whose = sent.transactional_id, sent.producer_id, sent.producer_epoch
        desk.step(MarkersAnswered(sent.partition, sent.coordinator_epoch, *whose, results))
        desk.flush()

    answer(p0=NONE)
    answer(p1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.wait(1_000)
    assert [effect.partitions for effect in desk.held] == [(("orders", 1),)]
    row: Any = desk.ask(DescribeTransactionsRequest(("id",)), 0).transaction_states[0]
    assert list(row.topics[0].partitions) == [1, 2]  # whose markers are missing
    answer(p1=NONE)
    desk.wait(1_000)
    assert desk.states()[-1].state is PREPARE_COMMIT and len(desk.held) == 1
    answer(p2=NONE)
    assert desk.states()[-1].state is COMPLETE_COMMIT


@pytest.mark.parametrize("is_former", [False, True])
def test_a_marker_of_a_former_coordinator_epoch_is_sent_again_under_the_present_one(is_former: bool) -> None:
    desk = TransactionDesk()
    desk.holds_markers = True
    desk.end(begun(desk), True)
    if is_former:
        desk.load(epoch=2)  # this broker leads on
    desk.marker_error = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    desk.write_markers()
    desk.marker_error = NONE
    desk.wait(1_000)
    assert [effect.coordinator_epoch for effect in desk.held] == [2] * is_former
    desk.write_markers()
    assert desk.states()[-1].state is (COMPLETE_COMMIT if is_former else PREPARE_COMMIT)


def test_a_partition_that_cannot_have_records_of_a_transaction_needs_no_marker() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    desk.marker_error = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    desk.end(producer, True)
    assert desk.states()[-1].state is COMPLETE_COMMIT


def test_a_record_waits_to_be_committed_for_the_timeout_of_its_transactions() -> None:
    desk = TransactionDesk()
    desk.is_held = True
    long = desk.send(InitProducerIdRequest("long", 50_000), 5)
    short = desk.send(InitProducerIdRequest("short", 5_000), 5)
    desk.wait(5_000)
    answer: Any = desk.answers[short]
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE and long not in desk.answers
    desk.wait(44_000)
    assert long not in desk.answers
    desk.wait(1_000)
    answer = desk.answers[long]
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_transaction_that_is_being_decided_is_not_fenced() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    desk.is_held = True
    desk.send(EndTxnRequest("id", *producer, True), 5)
    errors: list[ErrorCode] = []
    coordinator: Any = desk.coordinator
    coordinator.fence(desk.shard(), desk.ids()["id"], errors.append)
    assert errors == [CONCURRENT]
    desk.release()
    desk.flush()
    assert desk.states()[-1].state is COMPLETE_COMMIT


def test_brokers_ask_whether_partitions_are_in_a_transaction__kip890() -> None:
    desk = TransactionDesk()
    producer = begun(desk, 0)

    def verified(producer_id: int, epoch: int) -> list[int]:
        topics = [AddPartitionsToTxnTopic("orders", (0, 1))]
        one = AddPartitionsToTxnTransaction("id", producer_id, epoch, True, topics)
        (result,) = desk.ask(AddPartitionsToTxnRequest([one]), 4).results_by_transaction
        return [row.partition_error_code for row in result.topic_results[0].results_by_partition]

    assert verified(*producer) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert verified(producer[0], producer[1] + 1) == [FENCED] * 2
    assert verified(producer[0] + 1, producer[1]) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    desk.holds_markers = True
    desk.end(producer, True)
    assert verified(producer[0], producer[1] + 1) == [CONCURRENT] * 2


def test_a_change_counts_once_its_record_is_committed() -> None:
    desk = TransactionDesk()
    first = desk.init()
    producer = first.producer_id, first.producer_epoch
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert desk.add(producer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    entry = desk.ids()["id"]
    assert (entry.current.state, entry.pending) == (EMPTY, None)
    desk.failure = None
    desk.is_held = True
    number = desk.send(InitProducerIdRequest("id", TIMEOUT_MS), 5)
    assert number not in desk.answers and entry.current.producer_epoch == producer[1]
    assert desk.add(producer) == CONCURRENT
    desk.release()
    assert desk.answers[number].producer_epoch == producer[1] + 1  # type: ignore[attr-defined]


def test_an_id_whose_first_producer_was_not_written_begins_nothing() -> None:
    desk = TransactionDesk()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert desk.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    producer_id = desk.ids()["id"].current.producer_id
    assert desk.add((producer_id, -1)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.ids()["id"].current.state is EMPTY and desk.init().producer_epoch == 0


def test_a_coordinator_that_takes_over_ends_what_was_decided() -> None:
    desk = TransactionDesk()
    producer = begun(desk, 0, 1)
    desk.holds_markers = True
    desk.end(producer, True)
    desk.held.clear()
    desk.holds_markers = False
    desk.reload()
    desk.flush()
    assert [marker[3] for marker in desk.markers] == [True, True]
    assert desk.states()[-1].state is COMPLETE_COMMIT


def test_what_a_newer_release_has_written_is_passed_over() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    (key, value), producer_id = desk.logs[0][-1]  # type: ignore[misc]
    desk.logs[0].append(((key, b"\0\x09" + value[2:]), producer_id))  # type: ignore[index]
    desk.commit()
    desk.reload()
    assert desk.ids()["id"].current.state is ONGOING
    assert desk.end(producer, True).error_code == NONE


def test_operators_see_ids_and_their_partitions__kip664() -> None:
    desk = TransactionDesk()
    producer = begun(desk, 0, 1)
    (row,) = desk.ask(DescribeTransactionsRequest(("id",)), 0).transaction_states
    assert (row.transaction_state, row.producer_id) == ("Ongoing", producer[0])
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("orders", (0, 1))]
    listed = desk.ask(ListTransactionsRequest(("Ongoing", "Odd")), 2)
    assert listed.unknown_state_filters == ("Odd",)
    assert [one.transactional_id for one in listed.transaction_states] == ["id"]
    assert not desk.ask(ListTransactionsRequest(("Empty",)), 2).transaction_states


@pytest.mark.parametrize(("pattern", "is_listed"), [("i.", True), ("i", False), ("a|id", True), ("", True)])
def test_a_pattern_fits_whole_ids(pattern: str, is_listed: bool) -> None:
    desk = TransactionDesk()
    begun(desk, 0)
    answer = desk.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert bool(answer.transaction_states) is is_listed


@pytest.mark.parametrize("pattern", ["(", r"(i)\1", "i(?=d)"])
def test_a_pattern_is_of_re2__which_takes_no_exponential_time(pattern: str) -> None:
    desk = TransactionDesk()
    begun(desk, 0)
    answer = desk.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION


class TransactionMachine(RuleBasedStateMachine):
    """One id, its producers, lost appends and restarts: each transaction is decided once."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = TransactionDesk()
        self.producer = (-1, -1)
        self.answered: dict[tuple[int, int], bool] = {}  # ends, by the id and epoch of their markers

    @rule()
    def init(self) -> None:
        answer = self.desk.init()
        if not answer.error_code:
            self.producer = answer.producer_id, answer.producer_epoch

    @rule(index=st.integers(0, 3))
    def add(self, index: int) -> None:
        self.desk.add(self.producer, index)

    @rule(is_commit=st.booleans())
    def end(self, is_commit: bool) -> None:
        producer = self.producer
        answer = self.desk.end(producer, is_commit)
        if not answer.error_code:
            assert answer.producer_epoch > producer[1], "each end raises the epoch"
            self.answered.setdefault((producer[0], producer[1] + 1), is_commit)
            self.producer = answer.producer_id, answer.producer_epoch

    @rule(fails=st.booleans())
    def disk(self, fails: bool) -> None:
        self.desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None
        if not fails:
            self.desk.wait(200)

    @rule(holds=st.booleans())
    def leaders(self, holds: bool) -> None:
        self.desk.holds_markers = holds
        if not holds:
            self.desk.write_markers()

    @rule()
    def restart(self) -> None:
        self.desk.held.clear()
        self.desk.reload()
        self.desk.flush()

    @rule()
    def late(self) -> None:
        self.desk.wait(TIMEOUT_MS + 10_001)

    @invariant()
    def one_decision(self) -> None:
        decisions: dict[tuple[int, int], set[bool]] = {}
        for _, producer_id, epoch, is_commit in self.desk.markers:
            decisions.setdefault((producer_id, epoch), set()).add(is_commit)
        for whose, found in decisions.items():
            assert len(found) == 1, f"{whose} is committed and aborted"
            assert found <= {self.answered.get(whose, *found)}, f"{whose} ended otherwise than was answered"

    @invariant()
    def states_follow(self) -> None:
        marked = {(place, whose, epoch) for place, whose, epoch, _ in self.desk.markers}
        states = self.desk.states()
        for before, after in pairwise(states):
            assert after.state in TRANSITIONS[before.state]
            if before.producer_id == after.producer_id:
                assert after.producer_epoch >= before.producer_epoch
            if after.state in (COMPLETE_COMMIT, COMPLETE_ABORT):
                assert before.state in PREPARED
                for place in before.partitions:
                    assert (place, before.producer_id, before.producer_epoch) in marked, "no marker yet"


QUICK = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def machine() -> None:
    run_state_machine_as_test(TransactionMachine, settings=settings(QUICK, phases=[Phase.generate]))


def test_each_transaction_is_decided_once_through_failures_and_restarts() -> None:
    machine()


def complete_at_once(self: TransactionShard, entry: Any) -> None:
    entry.completed = entry.current.completed(self.state.now_ms)
    entry.pending = entry.completed.state
    self.write_completed(entry)


def always_commit(self: Transaction, is_commit: bool, *rest: Any, **more: Any) -> Transaction:
    return ENDING(self, True, *rest, **more)


def same_epoch(self: Transaction, is_commit: bool, version: int, *rest: Any, **more: Any) -> Transaction:
    return ENDING(self, is_commit, 0, *rest, **more)


def forget_markers(self: TransactionShard) -> None:
    self.serve(len(self.ids))


def at_once(self: TransactionShard, entry: Any, new: Transaction, then: Any) -> None:
    CHANGE(self, entry, new, then)
    entry.current, entry.pending = new, None


ENDING, CHANGE = Transaction.ending, TransactionShard.change

MUTANTS: dict[str, tuple[Any, str, Any, Any]] = {
    "complete before the markers are written": (TransactionShard, "complete", complete_at_once, machine),
    "every end commits": (Transaction, "ending", always_commit, machine),
    "an end keeps the epoch": (Transaction, "ending", same_epoch, machine),
    "a change counts before it is committed": (
        TransactionShard,
        "change",
        at_once,
        test_a_change_counts_once_its_record_is_committed,
    ),
    "what was decided is not ended after a restart": (
        TransactionShard,
        "on_loaded",
        forget_markers,
        test_a_coordinator_that_takes_over_ends_what_was_decided,
    ),
    "any producer may end": (
        coordinator_module,
        "decided",
        lambda entry, end, new_id, now_ms: entry.current.ending(end.is_commit, end.client_version, now_ms),
        machine,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_defect_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, defect, notices = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, defect)
    with pytest.raises(AssertionError):
        notices()
