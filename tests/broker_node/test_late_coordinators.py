"""A broker starts without its coordinators, and makes them when something is first asked of them."""

from __future__ import annotations

from pathlib import Path

from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from testkit.keyed_batches import keyed_batch
from tests.broker_node.harness import BrokerHarness

SMALL = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}


def test_records_are_taken_without_coordinators(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    harness.pass_time(100)
    harness.produce("t", keyed_batch([(None, b"x")], 0, -1, 0), acks=-1)
    harness.pass_time(5_000)
    assert repr(harness.broker.coordinators) == "<LateCoordinators, none yet>"


def test_a_partition_of_their_topic_makes_the_coordinators_and_is_loaded(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker=SMALL).run()
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    harness.client_ask(ApiKey.FIND_COORDINATOR, 4, request)
    harness.pass_time(1_000)
    assert harness.broker.coordinators.has_begun("__consumer_offsets", 0)
    (found,) = harness.client_ask(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 100)


def test_a_request_of_a_transaction_makes_the_coordinators(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=1_000)
    answer = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert repr(harness.broker.coordinators).startswith("<Coordinators ")
