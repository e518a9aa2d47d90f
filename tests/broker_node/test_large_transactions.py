"""Large requests of transactions at a broker: in slices, with the answers that one step gives."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.coordination import transaction_coordination
from kraftd.broker_node.coordination.transaction_coordination import TransactionCoordination
from kraftd.ground.event import DeadlineReached
from kraftd.groups.transactions.effects import SendMarkers
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness

NAMED = 6_000
TOPICS = [AddPartitionsToTxnTopic(name, tuple(range(NAMED))) for name in ("t", "unknown", "t")]
REQUESTS: dict[str, tuple[ApiKey, int, Any]] = {
    "add": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="id",
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=TOPICS,
        ),
    ),
    "add for brokers": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        4,
        AddPartitionsToTxnRequest(
            [AddPartitionsToTxnTransaction(f"id{number}", 0, 0, True, TOPICS[:1]) for number in range(2)]
        ),
    ),
    "describe": (
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        DescribeTransactionsRequest(tuple(f"transactional-id-{number}" for number in range(NAMED))),
    ),
    "list": (ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest()),
}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> BrokerHarness:
    found = BrokerHarness(Path(tmp_path_factory.mktemp("broker"))).run()
    found.create_topic("t", 3)
    found.create_topic("__transaction_state", 1, cleanup_policy="compact")
    found.pass_time(100)
    for id in ("a", "b"):
        assert not found.client_ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(id, 1_000)).error_code
    return found


@pytest.mark.parametrize("name", REQUESTS)
def test_a_large_request_has_the_answer_of_one_step(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    key, version, request = REQUESTS[name]
    slices = 0
    handle = TransactionCoordination.handle_in_slices

    def noted(self: TransactionCoordination, call: Any) -> Any:
        nonlocal slices
        for _ in handle(self, call):
            slices += 1
            yield

    with monkeypatch.context() as patch:
        patch.setattr(TransactionCoordination, "handle_in_slices", noted)
        sliced = harness.client_ask(key, version, deepcopy(request))
    assert slices > 1 or name == "list"
    monkeypatch.setattr(
        TransactionCoordination, "handle_in_slices", lambda self, call: iter(self.handle(call) or ())
    )
    assert sliced == harness.client_ask(key, version, deepcopy(request))
    assert name != "list" or len(sliced.transaction_states) == 2


def test_the_leaders_of_an_ended_transaction_are_found_in_slices(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 partitions took 40 ms in the step of the request."""
    broker = harness.broker
    found_in_step = [0]
    find, step = transaction_coordination.leader_of, broker.step

    def counted(view: Any, topic: str, index: int) -> int | None:
        found_in_step[-1] += 1
        return find(view, topic, index)

    def stepped(event: Any, now_ms: int) -> Any:
        found_in_step.append(0)
        return step(event, now_ms)

    monkeypatch.setattr(transaction_coordination, "leader_of", counted)
    monkeypatch.setattr(broker, "step", stepped)
    ended: list[Any] = []
    transactions = broker.coordinators.transactions
    monkeypatch.setattr(transactions, "_markers_answered", lambda _, results: ended.append(results))
    places = tuple(("t" if index < 3 else "gone", index) for index in range(NAMED))
    effect = SendMarkers(0, 0, "a", 5, 0, True, 0, places)
    transactions.perform([effect])
    harness.broker_step(DeadlineReached())
    harness.pass_time(100)
    assert [len(results) for results in ended] == [NAMED - 3, 3]  # what is gone does not wait for a leader
    assert sum(found_in_step) > NAMED - 1_000 and max(found_in_step) < 1_000
