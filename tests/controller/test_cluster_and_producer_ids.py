"""DescribeCluster of controllers, their registration, and blocks of producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.brokers.producer_ids import allocate_producer_ids
from kraftd.controller.cluster import describe_cluster
from kraftd.controller.features.controllers import register_controller
from kraftd.ground.refusal import Refusal
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster


def described(
    cluster: Cluster,
    endpoint_type: int = 2,
    version: int = 2,
    leader_id: int | None = 1,
    listener: str = "C",
    with_operations: bool = False,
    **more: Any,
) -> DescribeClusterResponse:
    request = DescribeClusterRequest(
        endpoint_type=endpoint_type, include_cluster_authorized_operations=with_operations
    )
    return describe_cluster(
        cluster.image, request, version, cluster_id="id", listener=listener, leader_id=leader_id, **more
    )


def controllers(*ids: int) -> Cluster:
    cluster = Cluster()
    for number in ids:
        request = ControllerRegistrationRequest(
            number, bytes(16), listeners=[Listener("C", f"host{number}", 9093, 0)]
        )
        cluster.apply(register_controller(cluster.ctx, request).records)
    return cluster


def test_described_nodes_are_the_controllers_with_the_same_listener__kip919() -> None:
    answer = described(controllers(2, 1))
    assert [(node.broker_id, node.host, node.port) for node in answer.brokers] == [
        (1, "host1", 9093),
        (2, "host2", 9093),
    ]
    assert (answer.controller_id, answer.cluster_id, answer.endpoint_type) == (1, "id", 2)
    assert described(controllers(1), listener="OTHER").brokers == []


@pytest.mark.parametrize("leader_id", [None, 3])
def test_an_unregistered_leader_is_not_named(leader_id: int | None) -> None:
    assert described(controllers(1, 2), leader_id=leader_id).controller_id == -1


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code", "text"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE, "This is a controller; the request is for brokers."),
        (1, 0, ErrorCode.INVALID_REQUEST, "This is a controller; the request is for brokers."),
        (3, 1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "There is no endpoint type 3."),
        (3, 0, ErrorCode.INVALID_REQUEST, "There is no endpoint type 3."),
    ],
)
def test_a_request_to_describe_brokers_is_refused(
    endpoint_type: int, version: int, code: ErrorCode, text: str
) -> None:
    answer = described(controllers(1), endpoint_type, version)
    assert (answer.error_code, answer.error_message, answer.brokers) == (code, text, [])


def test_authorized_operations_are_included_on_request() -> None:
    cluster = controllers(1)
    answers = [
        described(cluster, with_operations=included, authorized_operations=5) for included in (False, True)
    ]
    assert [answer.cluster_authorized_operations for answer in answers] == [-(2**31), 5]


def test_before_3_7_iv0_controllers_neither_register_nor_are_described() -> None:
    cluster = Cluster(metadata_version=14)
    with pytest.raises(Refusal) as caught:
        register_controller(cluster.ctx, ControllerRegistrationRequest(1))
    assert str(caught.value) == "UNSUPPORTED_VERSION: Controllers cannot register at metadata.version 14."
    with pytest.raises(Refusal) as caught:
        described(cluster)
    assert str(caught.value) == (
        "UNSUPPORTED_VERSION: Controllers cannot be asked directly at metadata.version 14."
    )


def test_blocks_of_producer_ids_are_disjoint_and_follow_each_other() -> None:
    cluster = Cluster().brokers(1, 2)
    firsts = []
    for broker_id in (1, 2, 1):
        decision = allocate_producer_ids(cluster.ctx, AllocateProducerIdsRequest(broker_id, 100 + broker_id))
        cluster.apply(decision.records)
        assert decision.answer.producer_id_len == 1_000
        firsts.append(decision.answer.producer_id_start)
    assert firsts == [0, 1_000, 2_000]


def test_a_stale_broker_gets_no_producer_ids() -> None:
    with pytest.raises(Refusal, match="STALE_BROKER_EPOCH"):
        allocate_producer_ids(Cluster().broker(1).ctx, AllocateProducerIdsRequest(1, 100))


@pytest.mark.parametrize("left", [1_000, 999])
def test_producer_ids_do_not_wrap_around(left: int) -> None:
    cluster = Cluster().broker(1)
    last = (1 << 63) - 1
    cluster.apply([VersionedRecord(ProducerIdsRecord(1, 101, last - left), 0)])
    request = AllocateProducerIdsRequest(1, 101)
    if left == 1_000:
        cluster.apply(allocate_producer_ids(cluster.ctx, request).records)
        assert cluster.image.next_producer_id == last
    with pytest.raises(Refusal) as caught:
        allocate_producer_ids(cluster.ctx, request)
    assert str(caught.value) == "UNKNOWN_SERVER_ERROR: All producer ids are used up."


def test_a_controller_registers_with_its_listeners_and_features__kip919() -> None:
    listeners = [Listener("A", "h", 1, 3), Listener("B", "h", 2, 0), Listener("A", "other", 3, 1)]
    features = [Feature("metadata.version", 7, 30)]
    request = ControllerRegistrationRequest(1, b"\5" * 16, False, listeners, features)
    decision = register_controller(Cluster().ctx, request)
    assert decision.answer == ControllerRegistrationResponse()
    endpoints = [ControllerEndpoint("A", "other", 3, 1), ControllerEndpoint("B", "h", 2, 0)]
    ranges = [ControllerFeature("metadata.version", 7, 30)]
    record = RegisterControllerRecord(1, b"\5" * 16, False, endpoints, ranges)
    assert decision.records == [VersionedRecord(record, 0)]


def test_a_listener_of_an_unknown_protocol_is_an_error_as_in_kafka() -> None:
    request = ControllerRegistrationRequest(1, bytes(16), listeners=[Listener("A", "h", 1, 4)])
    with pytest.raises(Refusal) as caught:
        register_controller(Cluster().ctx, request)
    assert str(caught.value) == "UNKNOWN_SERVER_ERROR: Listener A: there is no security protocol 4."
