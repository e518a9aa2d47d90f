"""Metrics of the transaction coordinator, and open transactions on the status page."""

from __future__ import annotations

from pathlib import Path

from kraftd.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.metrics.status_page.status import Transactions, status
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness, records
from tests.metrics.test_broker_metrics import found
from tests.metrics.watched import readings

SETTINGS = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}


def begin(harness: BrokerHarness, id: str) -> tuple[int, int]:
    """A transaction with a record; the producer's id and epoch."""
    slot = harness.client_send(ApiKey.INIT_PRODUCER_ID, 3, InitProducerIdRequest(id, 60_000))
    harness.pass_time(100)
    made = harness.response(slot)
    assert made is not None and made.error_code == 0
    topic = AddPartitionsToTxnTopic("t", (0,))
    request = AddPartitionsToTxnRequest([], id, made.producer_id, made.producer_epoch, [topic])
    added = harness.client_ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    return made.producer_id, made.producer_epoch


def transactions(harness: BrokerHarness) -> Transactions:
    shown = status(readings(harness, clients=harness.broker), None).transactions
    assert shown is not None
    return shown


def test_open_transactions_are_counted_and_shown_with_their_age(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker=SETTINGS).run()
    harness.create_topic("t")
    harness.create_topic("__transaction_state", 2, cleanup_policy="compact")
    harness.pass_time(100)
    producer = begin(harness, "old")
    harness.pass_time(2_000)
    begin(harness, "new")
    harness.pass_time(3_000)
    every = found(harness)

    def of(name: str) -> float:
        return every[f"kraftd_{name}", ()]

    assert (of("transactional_ids"), of("open_transactions"), of("ending_transactions")) == (2, 2, 0)
    assert 5_000 <= of("oldest_transaction_age_ms") < 6_000
    assert (
        every["kafka_coordinator_transaction_TransactionMarkerChannelManager_UnknownDestinationQueueSize", ()]
        == 0
    )
    shown = transactions(harness)
    assert shown.count == 2
    assert [(one.id, one.state, one.partitions, one.is_late) for one in shown.oldest] == [
        ("old", "Ongoing", 1, False),
        ("new", "Ongoing", 1, False),
    ]
    assert harness.client_ask(ApiKey.END_TXN, 3, EndTxnRequest("old", *producer, True)).error_code == 0
    harness.pass_time(100)
    assert [one.id for one in transactions(harness).oldest] == ["new"]


def test_what_is_open_is_shown_oldest_first_also_after_a_restart(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path, broker=SETTINGS).run()
    before.create_topic("t")
    before.create_topic("__transaction_state", 1, cleanup_policy="compact")
    before.pass_time(100)
    first = begin(before, "a")
    before.pass_time(1_000)
    begin(before, "b")
    assert before.client_ask(ApiKey.END_TXN, 3, EndTxnRequest("a", *first, True)).error_code == 0
    before.pass_time(1_000)
    begin(before, "a")
    before.pass_time(100)
    assert [one.id for one in transactions(before).oldest] == ["b", "a"]
    before.executor.close_files()
    before.disk.locked.clear()
    after = BrokerHarness(tmp_path, before.disk, broker=SETTINGS)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert [one.id for one in transactions(after).oldest] == ["b", "a"]


def test_partitions_that_a_coordinator_refused_are_counted__kip890(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker=SETTINGS).run()
    harness.create_topic("t", 2)
    harness.create_topic("__transaction_state", 1, cleanup_policy="compact")
    harness.pass_time(100)
    producer, epoch = begin(harness, "id")
    batch = records(1, producer_id=producer, producer_epoch=epoch, base_sequence=0, attributes=0x10)
    request = harness.produce_request("t", {1: batch}, -1)
    request.transactional_id = "id"
    slot = harness.client_send(ApiKey.PRODUCE, 11, request)
    harness.pass_time(100)
    answer = harness.response(slot)
    assert answer is not None and answer.responses[0].partition_responses[0].error_code
    every = found(harness)
    name = "kafka_server_AddPartitionsToTxnManager_"
    assert every[f"{name}VerificationFailureRate_total", ()] == 1
    assert every[f"{name}VerificationTimeMs_count", ()] == 1
