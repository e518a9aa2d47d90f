"""A broker starts without its coordinators, and makes them when something is first asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.broker_node.effects import LoadCoordinators
from kraftd.broker_node.events import CoordinatorsLoaded
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kraftd.partition.producer_entry import TRANSACTIONAL
from kraftd.requests.events import ConnectionClosed
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from testkit.keyed_batches import keyed_batch
from tests.broker_node.harness import CONNECTION, BrokerHarness, records

SMALL = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
VERSIONS = ApiVersionsRequest("test", "1")
FIND = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))


def test_records_are_taken_without_coordinators(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    harness.pass_time(100)
    harness.produce("t", keyed_batch([(None, b"x")], 0, -1, 0), acks=-1)
    harness.pass_time(5_000)
    assert repr(harness.broker.coordinators) == "<LateCoordinators, none yet>"


def test_a_partition_of_their_topic_makes_the_coordinators_and_is_loaded(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker=SMALL).run()
    harness.client_ask(ApiKey.FIND_COORDINATOR, 4, FIND)
    harness.pass_time(1_000)
    assert harness.broker.coordinators.has_begun("__consumer_offsets", 0)
    (found,) = harness.client_ask(ApiKey.FIND_COORDINATOR, 4, FIND).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 100)


def test_a_request_of_a_transaction_makes_the_coordinators(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=1_000)
    answer = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert repr(harness.broker.coordinators).startswith("<Coordinators ")


def without_code(tmp_path: Path) -> tuple[BrokerHarness, list[Any]]:
    """A broker whose coordinators' code is not loaded yet, and the effects that ask for it."""
    harness, asked = BrokerHarness(tmp_path, broker=SMALL), list[Any]()
    harness.broker.coordinators.are_loaded = False
    harness.executor.performers[LoadCoordinators] = asked.append
    return harness.run(), asked


def test_requests_wait_for_the_code_and_hold_their_connection(tmp_path: Path) -> None:
    harness, asked = without_code(tmp_path)
    harness.create_topic("t")
    harness.pass_time(100)
    own = {"attributes": TRANSACTIONAL, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    produce = harness.produce_request("t", {0: bytes(records(2, **own))}, acks=-1)
    produce.transactional_id = "id"
    assert not asked
    waiting = [
        harness.client_send(key, version, request, connection_id=CONNECTION + number)
        for number, (key, version, request) in enumerate(
            (
                (ApiKey.LIST_GROUPS, 5, ListGroupsRequest()),
                (ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("id", 1_000)),
                (ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest()),
                (ApiKey.PRODUCE, 11, produce),
            )
        )
    ]
    waiting.append(harness.client_send(ApiKey.API_VERSIONS, 4, VERSIONS))  # behind the first
    closed = harness.client_send(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(), connection_id=CONNECTION + 9)
    harness.broker_step(ConnectionClosed(CONNECTION + 9))
    harness.client_ask(ApiKey.API_VERSIONS, 4, VERSIONS, connection_id=CONNECTION + 8)
    assert len(asked) == 1
    assert not any(map(harness.response, waiting))
    harness.broker_step(CoordinatorsLoaded())
    harness.pass_time(100)
    assert all(map(harness.response, waiting))
    assert harness.response(closed) is None
    assert harness.client_ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups == []


def test_a_partition_of_their_topic_waits_for_the_code(tmp_path: Path) -> None:
    harness, asked = without_code(tmp_path)
    for _ in range(2):
        (found,) = harness.client_ask(ApiKey.FIND_COORDINATOR, 4, FIND).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        harness.pass_time(1_000)
    assert len(asked) == 1
    assert repr(harness.broker.coordinators) == "<LateCoordinators, none yet>"
    harness.broker_step(CoordinatorsLoaded())
    (found,) = harness.client_ask(ApiKey.FIND_COORDINATOR, 4, FIND).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 100)
