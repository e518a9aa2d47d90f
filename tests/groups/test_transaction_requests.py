"""What a transaction coordinator answers: refusals, the rights of callers, and what operators see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.seen import Open, oldest_open
from kraftd.groups.transactions.states import COMPLETE_COMMIT, EMPTY, ONGOING
from kraftd.groups.transactions.transaction import MAX_EPOCH, NO_TIMEOUT_MS
from kraftd.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.wire.error_code import ErrorCode, error_name
from tests.groups.transaction_desk import TIMEOUT_MS, V1, V2, TransactionDesk, begun

Right = tuple[AclOperation, AclResourceType, str]

WRITE_ID: Right = (AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, "id")
TWO_PHASE_ID: Right = (AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID, "id")
DESCRIBE_ID: Right = (AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, "id")
READ_GROUP: Right = (AclOperation.READ, AclResourceType.GROUP, "group")
CLUSTER: Right = (AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)


def on_topic(operation: AclOperation, name: str) -> Right:
    return operation, AclResourceType.TOPIC, name


def ask(desk: TransactionDesk, request: Any, version: int, *denied: Right) -> Any:
    """The answer to a request of a caller who lacks some rights."""
    call = Call(-1 - len(desk.answers), version, allows=lambda *right: right not in denied)
    desk.perform(desk.coordinator.handle(call, request, desk.now_ms))
    desk.flush()
    return desk.answers[call.token]


@pytest.mark.parametrize(
    ("changes", "denied", "error"),
    [
        ({}, WRITE_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ({}, TWO_PHASE_ID, "NONE"),
        ({"transactional_id": ""}, None, "INVALID_REQUEST"),
        ({"transactional_id": ""}, (*WRITE_ID[:2], ""), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ({"producer_id": 7}, None, "INVALID_REQUEST"),
        ({"producer_epoch": 0}, None, "INVALID_REQUEST"),
        ({"keep_prepared_txn": True}, None, "UNSUPPORTED_VERSION"),
        ({"transaction_timeout_ms": 0}, None, "INVALID_TRANSACTION_TIMEOUT"),
        ({"transaction_timeout_ms": 1}, None, "NONE"),
        ({"transaction_timeout_ms": 900_000}, None, "NONE"),
        ({"transaction_timeout_ms": 900_001}, None, "INVALID_TRANSACTION_TIMEOUT"),
        ({"enable2_pc": True}, WRITE_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ({"enable2_pc": True}, TWO_PHASE_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ({"enable2_pc": True, "transaction_timeout_ms": 0}, None, "NONE"),
    ],
)
def test_a_producer_is_refused_before_its_id_is_looked_at(
    changes: dict[str, Any], denied: Right | None, error: str
) -> None:
    desk = TransactionDesk(config=TransactionConfig(transaction_two_phase_commit_enable=True))
    request = InitProducerIdRequest("id", TIMEOUT_MS)
    for name, value in changes.items():
        setattr(request, name, value)
    answer = ask(desk, request, 6, *([denied] if denied else []))
    assert error_name(answer.error_code) == error
    expected = (101, 0) if error == "NONE" else (-1, -1)
    assert (answer.producer_id, answer.producer_epoch) == expected


def test_a_transaction_of_two_phases_needs_a_setting_and_never_times_out__kip939() -> None:
    request = InitProducerIdRequest("id", TIMEOUT_MS, enable2_pc=True)
    refused = ask(TransactionDesk(), request, 6)
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    desk = TransactionDesk(config=TransactionConfig(transaction_two_phase_commit_enable=True))
    answer = ask(desk, request, 6)
    assert desk.add((answer.producer_id, answer.producer_epoch)) == 0
    assert desk.states()[-1].timeout_ms == NO_TIMEOUT_MS
    desk.now_ms += NO_TIMEOUT_MS
    desk.wait(20_000)
    assert desk.ids()["id"].current.state is ONGOING and not desk.markers


def places_of(answer: Any, version: int) -> dict[str, dict[int, str]]:
    """The error of each partition that AddPartitionsToTxn names."""
    if version >= 4:
        (one,) = answer.results_by_transaction
        assert one.transactional_id == "id"
        topics = one.topic_results
    else:
        topics = answer.results_by_topic_v3_and_below
    return {
        topic.name: {
            row.partition_index: error_name(row.partition_error_code) for row in topic.results_by_partition
        }
        for topic in topics
    }


def adding(
    version: int, producer: tuple[int, int], id: str = "id", /, **topics: tuple[int, ...]
) -> AddPartitionsToTxnRequest:
    rows = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
    if version < 4:
        return AddPartitionsToTxnRequest([], id, *producer, rows)
    return AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(id, *producer, False, rows)])


UNTRIED, UNKNOWN = "OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"
UNTRIED_BOTH = {"orders": {1: UNTRIED}, "audit": {0: UNTRIED}}
DENIED_TOPIC, DENIED_ID = "TOPIC_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
OFFSETS, WRITE_AUDIT = "__consumer_offsets", on_topic(AclOperation.WRITE, "audit")


@pytest.mark.parametrize(
    ("version", "denied", "topics", "errors"),
    [
        (3, None, {"orders": (1, 9), "audit": (0,)}, {**UNTRIED_BOTH, "orders": {1: UNTRIED, 9: UNKNOWN}}),
        (3, WRITE_AUDIT, {"orders": (1,), "audit": (0,)}, {**UNTRIED_BOTH, "audit": {0: DENIED_TOPIC}}),
        (3, None, {"orders": (1,), OFFSETS: (0,)}, {"orders": {1: UNTRIED}, OFFSETS: {0: DENIED_TOPIC}}),
        (3, WRITE_ID, {"orders": (1, 2)}, {"orders": {1: DENIED_ID, 2: DENIED_ID}}),
        (3, CLUSTER, {"orders": (1, 2)}, {"orders": {1: "NONE", 2: "NONE"}}),
        (4, None, {"orders": (1, 9)}, {"orders": {1: UNTRIED, 9: UNKNOWN}}),
        (4, WRITE_AUDIT, {"orders": (1,), "audit": (0,)}, {"orders": {1: "NONE"}, "audit": {0: "NONE"}}),
        (4, None, {OFFSETS: (0,)}, {OFFSETS: {0: "NONE"}}),
        (4, WRITE_ID, {"orders": (1,)}, {"orders": {1: "NONE"}}),
    ],
)
def test_partitions_are_added_all_or_none(
    version: int, denied: Right | None, topics: dict[str, tuple[int, ...]], errors: dict[str, dict[int, str]]
) -> None:
    """A producer needs rights to its id and to topics; a broker, from version 4 on, to the cluster."""
    desk = TransactionDesk()
    desk.topics.partitions[OFFSETS] = 1
    producer = begun(desk, 0)
    answer = ask(desk, adding(version, producer, **topics), version, *([denied] if denied else []))
    assert answer.error_code == 0
    assert places_of(answer, version) == errors
    is_added = all(error == "NONE" for rows in errors.values() for error in rows.values())
    added = {(topic, index) for topic, indexes in topics.items() for index in indexes if is_added}
    last = desk.states()[-1]
    assert last.partitions == {("orders", 0)} | added
    assert last.client_version == (2 if is_added and version == 4 else 0)


def test_a_broker_needs_rights_to_the_cluster_and_may_ask_for_nothing() -> None:
    desk = TransactionDesk()
    refused = ask(desk, adding(4, begun(desk), orders=(1,)), 4, CLUSTER)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert not refused.results_by_transaction and len(desk.states()) == 2
    nothing = ask(desk, AddPartitionsToTxnRequest(), 4)
    assert (nothing.error_code, nothing.results_by_transaction) == (0, [])


def test_partitions_that_are_in_a_transaction_are_not_written_again() -> None:
    desk = TransactionDesk()
    producer = begun(desk, 0, 1)
    assert desk.add(producer, 1) == desk.add(producer, 0, 1) == 0 and len(desk.states()) == 2
    assert desk.add(producer, 1, 2) == 0 and len(desk.states()) == 3
    current = desk.end(producer, True)
    assert not desk.ids()["id"].current.partitions
    assert desk.ask(adding(4, (current.producer_id, current.producer_epoch)), 4).error_code == 0
    assert desk.states()[-1].state is ONGOING  # even of no partition, as in Kafka


FIRST_VERSIONS = {  # in which producers know PRODUCER_FENCED
    "init": 4,
    "add": 2,
    "offsets": 2,
    "end": 2,
}


@pytest.mark.parametrize("name", FIRST_VERSIONS)
def test_a_fence_has_an_error_code_that_the_producer_knows(name: str) -> None:
    desk = TransactionDesk(V1)
    producer_id, epoch = begun(desk)
    late = producer_id, epoch + 1
    requests: dict[str, Any] = {
        "init": InitProducerIdRequest("id", TIMEOUT_MS, *late),
        "add": adding(3, late, orders=(0,)),
        "offsets": AddOffsetsToTxnRequest("id", *late, "group"),
        "end": EndTxnRequest("id", *late, True),
    }
    desk.end((producer_id, epoch), True, version=4)
    codes = []
    for version in (FIRST_VERSIONS[name] - 1, FIRST_VERSIONS[name]):
        answer = ask(desk, requests[name], version)
        codes.append(
            places_of(answer, version)["orders"][0] if name == "add" else error_name(answer.error_code)
        )
    assert codes == ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"]


def test_offsets_are_added_as_the_partition_of_their_group() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    request = AddOffsetsToTxnRequest("id", *producer, "group")
    assert ask(desk, request, 3, WRITE_ID).error_code == ErrorCode[DENIED_ID]
    assert ask(desk, request, 3, READ_GROUP).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert desk.states()[-1].partitions == {("orders", 0)}
    assert ask(desk, request, 3).error_code == 0
    last = desk.states()[-1]
    assert last.partitions == {("orders", 0), (OFFSETS, len("group"))}
    assert (last.client_version, last.timeout_ms) == (0, TIMEOUT_MS)


@pytest.mark.parametrize("id", ["", "other"])
def test_nothing_is_done_for_an_id_that_is_none_or_unknown(id: str) -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    error = "INVALID_PRODUCER_ID_MAPPING" if id else "INVALID_REQUEST"
    ended = [desk.end(producer, True, id, version) for version in (4, 5)]
    offsets = ask(desk, AddOffsetsToTxnRequest(id, *producer, "group"), 3)
    assert [error_name(one.error_code) for one in (*ended, offsets)] == [error] * 3
    assert desk.add(producer, id=id) == ErrorCode[error]
    one = AddPartitionsToTxnTransaction(id, *producer, True, [AddPartitionsToTxnTopic("orders", (0,))])
    (row,) = desk.ask(AddPartitionsToTxnRequest([one]), 4).results_by_transaction
    assert row.topic_results[0].results_by_partition[0].partition_error_code == ErrorCode[error]
    (described,) = desk.ask(DescribeTransactionsRequest((id,)), 0).transaction_states
    found = error_name(described.error_code), described.transactional_id
    assert found == ("TRANSACTIONAL_ID_NOT_FOUND" if id else "INVALID_REQUEST", id)
    assert len(desk.states()) == 2


def test_an_end_needs_rights_and_its_record() -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    request = EndTxnRequest("id", *producer, True)
    assert ask(desk, request, 5, WRITE_ID).error_code == ErrorCode[DENIED_ID]
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert ask(desk, request, 5).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.ids()["id"].current.state is ONGOING
    desk.failure = None
    assert ask(desk, request, 4).error_code == 0
    assert [one.client_version for one in desk.states()[-2:]] == [0, 0]


@pytest.mark.parametrize("name", ["init", "add", "end v1", "end v2"])
def test_nothing_begins_while_a_change_is_on_its_way(name: str) -> None:
    desk = TransactionDesk()
    producer = begun(desk)
    desk.is_held = True
    desk.send(adding(3, producer, orders=(1,)), 3)
    codes: dict[str, Callable[[], int]] = {
        "init": lambda: desk.init().error_code,
        "add": lambda: desk.add(producer, 2),
        "end v1": lambda: desk.end(producer, True, version=4).error_code,
        "end v2": lambda: desk.end(producer, True).error_code,
    }
    assert codes[name]() == ErrorCode.CONCURRENT_TRANSACTIONS
    desk.release()
    assert len(desk.states()) == 3


@pytest.mark.parametrize("is_begun", [False, True])
def test_only_the_producer_itself_ends_and_goes_on(is_begun: bool) -> None:
    """Epochs of another producer id, and the last one among them, say nothing of this one."""
    desk = TransactionDesk()
    first = desk.init()
    producer_id, mapping = first.producer_id, ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if is_begun:
        desk.add((producer_id, 0))
    for epoch in (0, MAX_EPOCH - 1):
        assert desk.end((producer_id + 1, epoch), False).error_code == mapping
        expected = producer_id + 1, epoch
        assert desk.init(expected=expected).error_code == ErrorCode.PRODUCER_FENCED
    assert desk.ids()["id"].current.state is (ONGOING if is_begun else EMPTY)


def test_any_producer_goes_on_with_an_id_that_has_no_epoch_yet() -> None:
    desk = TransactionDesk()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.init()
    desk.failure = None
    answer = desk.init(expected=(7, 3))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 101, 0)


def test_a_controller_that_gives_no_producer_id_has_the_producer_ask_again() -> None:
    desk = TransactionDesk()
    desk.holds_ids = True
    calls = [desk.send(InitProducerIdRequest(id, TIMEOUT_MS), 5) for id in ("one", "two")]
    first, second = desk.wanted
    assert first.number != second.number and not desk.answers
    desk.wanted = [first]
    desk.give_ids(are_left=False)
    desk.wanted = [second]
    desk.give_ids()
    refused, given = (desk.answers[call] for call in calls)
    assert (refused.error_code, refused.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert (given.error_code, given.producer_id, given.producer_epoch) == (0, 101, 0)


def test_an_abort_that_waited_for_a_producer_id_is_of_the_time_when_it_came() -> None:
    desk = TransactionDesk()
    begun(desk)
    entry = desk.ids()["id"]
    entry.current = replace(entry.current, producer_epoch=MAX_EPOCH - 1)
    desk.holds_ids = desk.holds_markers = True
    desk.wait(TIMEOUT_MS + 20_000)
    desk.now_ms += 5_000
    desk.give_ids()
    assert desk.states()[-1].last_update_ms == desk.now_ms


def test_operators_see_what_they_may__kip664() -> None:
    desk = TransactionDesk()
    began_ms = desk.now_ms
    desk.init()
    producer = begun(desk, 0, 1)
    assert producer[1] == 1
    desk.ask(adding(3, producer, audit=(1,)), 3)
    request = DescribeTransactionsRequest(("id",))
    (denied,) = ask(desk, request, 0, DESCRIBE_ID).transaction_states
    assert (denied.error_code, denied.transactional_id) == (ErrorCode[DENIED_ID], "id")
    (row,) = ask(desk, request, 0, on_topic(AclOperation.DESCRIBE, "audit")).transaction_states
    assert (row.error_code, row.transactional_id, row.transaction_state) == (0, "id", "Ongoing")
    assert (row.transaction_timeout_ms, row.transaction_start_time_ms) == (TIMEOUT_MS, began_ms)
    assert (row.producer_id, row.producer_epoch) == producer
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("orders", (0, 1))]
    assert not ask(desk, ListTransactionsRequest(), 1, DESCRIBE_ID).transaction_states
    desk.coordinator.shards.clear()
    (row,) = ask(desk, request, 0).transaction_states
    assert row.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["early", "id", "late"]),
        ({"producer_id_filters": (102, 999)}, ["id"]),
        ({"duration_filter": -1}, ["early", "id", "late"]),
        ({"duration_filter": 0}, ["early", "id"]),
        ({"duration_filter": 999}, ["early", "id"]),
        ({"duration_filter": 1_000}, ["early"]),
        ({"state_filters": ("Odd", "Odd")}, []),
        ({"state_filters": ("Empty", "Ongoing"), "producer_id_filters": (101,)}, ["early"]),
    ],
)
def test_a_list_has_the_ids_that_pass_all_filters__kip664(filters: dict[str, Any], ids: list[str]) -> None:
    """One id has no transaction, one has begun a second ago, one now."""
    desk = TransactionDesk()
    desk.init("early")
    begun(desk)
    desk.now_ms += 1_000
    desk.add((desk.init("late").producer_id, 0), id="late")
    answer = desk.ask(ListTransactionsRequest(**filters), 2)
    assert [row.transactional_id for row in answer.transaction_states] == ids
    states = {"early": (101, "Empty"), "id": (102, "Ongoing"), "late": (103, "Ongoing")}
    found = {
        one.transactional_id: (one.producer_id, one.transaction_state) for one in answer.transaction_states
    }
    assert found == {id: states[id] for id in ids}
    assert answer.unknown_state_filters == (("Odd",) if not ids else ())


def test_a_list_waits_until_all_partitions_are_loaded() -> None:
    desk = TransactionDesk()
    desk.coordinator.load(1, 1, 0, 5, desk.now_ms)
    desk.coordinator.take_effects()
    answer = desk.ask(ListTransactionsRequest(), 2)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_pattern_that_is_none_leaves_no_word_in_the_brokers_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    desk = TransactionDesk()
    desk.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert capfd.readouterr() == ("", "")


def test_the_oldest_transactions_are_shown_first_decided_ones_among_them() -> None:
    desk = TransactionDesk()
    assert oldest_open([desk.shard()], 2) == []
    producers = {}
    for id in ("z", "second", "a"):
        producers[id] = desk.init(id).producer_id, 0
        assert desk.add(producers[id], 0, 1, id=id) == 0
        desk.now_ms += 10
    desk.holds_markers = True
    desk.end(producers["second"], True, "second")
    started_ms = desk.now_ms - 30
    first = Open("z", "Ongoing", 101, started_ms, TIMEOUT_MS, 2)
    second = Open("second", "PrepareCommit", 102, started_ms + 10, TIMEOUT_MS, 2)
    assert oldest_open([desk.shard()], 2) == [first, second]
    assert [one.transactional_id for one in oldest_open([desk.shard()], 9)] == ["z", "second", "a"]


@pytest.mark.parametrize(("version", "of_value"), [(0, 0), (1, 1), (2, 1)])
def test_values_have_the_version_that_the_clusters_level_allows__kip890(version: int, of_value: int) -> None:
    desk = TransactionDesk(version)
    desk.end(begun(desk), True, version=4)
    assert desk.states()[-1].state is COMPLETE_COMMIT
    values: list[Any] = [what for what, _ in desk.logs[0]]
    assert [int.from_bytes(value[:2], "big") for _, value in values] == [of_value] * 4


def test_a_new_coordinator_supposes_the_oldest_level() -> None:
    desk = TransactionDesk(V2)
    new = type(desk.coordinator)(TransactionConfig(), desk.topics, len)  # type: ignore[arg-type]
    assert new.partition_count == 50
    assert new.transaction_version == 0  # type: ignore[attr-defined]
