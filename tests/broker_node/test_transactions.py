"""What transactional requests are refused with, as by a stock broker."""

from __future__ import annotations

import gc
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.broker_node.apis.api_00_produce import ATTRIBUTES_LOW_AT
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.produce_request import ProduceRequest
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.metadata.state import AclState
from kraftd.partition.producer_entry import TRANSACTIONAL
from kraftd.requests.events import FramesReceived
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from tests.broker_node.harness import AT, CONNECTION, BrokerHarness, records


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    for topic in ("__consumer_offsets", "__transaction_state"):
        harness.create_topic(topic, 1, cleanup_policy="compact")
    harness.pass_time(100)
    return harness


def test_a_refused_producer_has_no_epoch(harness: BrokerHarness) -> None:
    answer = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("id", 0))
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_two_phases_need_a_right_of_their_own__kip939(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    boundary, authorizer = harness.broker.boundary, StandardAuthorizer(AuthorizerSettings())
    monkeypatch.setattr(boundary, "_authorizer", authorizer)
    id = AclResourceType.TRANSACTIONAL_ID, "id", AclPatternType.LITERAL, "User:ANONYMOUS", "*"
    authorizer.change((), [AclState(*id, AclOperation.WRITE, AclPermission.ALLOW)])
    authorizer.end_load()
    boundary.registry.routes[ApiKey.INIT_PRODUCER_ID].last = 6  # as with unstable.api.versions.enable
    request = InitProducerIdRequest("id", 60_000, enable2_pc=True)
    answer = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 6, request)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_batches_of_coordinators_have_the_sequences_of_stock_ones(harness: BrokerHarness) -> None:
    commit = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 1)])
    slots = [
        harness.client_send(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("id", 60_000)),
        harness.client_send(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest("g", topics=[commit])),
    ]
    harness.pass_time(100)
    assert all(harness.response(slot) is not None for slot in slots)
    for topic, sequence in (("__transaction_state", -1), ("__consumer_offsets", 0)):
        (batch,) = iter_batches(harness.read(topic).records)
        assert (batch.header.producer_id, batch.header.base_sequence) == (-1, sequence)


@pytest.mark.parametrize("producer", [(-1, -1), (-1, 0), (7, -1)])
def test_a_marker_of_no_producer_is_refused(harness: BrokerHarness, producer: tuple[int, int]) -> None:
    marker = WritableTxnMarker(*producer, True, [WritableTxnMarkerTopic("t", (0,))], 0)
    answer = harness.client_ask(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
    (row,) = answer.markers[0].topics[0].partitions
    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not harness.read("t").records


def test_a_marker_for_no_partition_has_no_place_in_the_answer(harness: BrokerHarness) -> None:
    """As in Kafka, whose answer is made of partitions."""
    markers = [WritableTxnMarker(7, 0, True, [WritableTxnMarkerTopic("t", parts)], 0) for parts in ((), (0,))]
    markers[0].producer_id = 8
    answer = harness.client_ask(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers))
    assert [row.producer_id for row in answer.markers] == [7]


def test_an_unknown_topic_is_named_whatever_the_transaction__kip890(harness: BrokerHarness) -> None:
    rows = [TxnOffsetCommitRequestPartition(0, 1)]

    def errors(*topics: str) -> list[int]:
        parts = [TxnOffsetCommitRequestTopic(name, rows) for name in topics]
        request = TxnOffsetCommitRequest("id", "g", 7, 0, topics=parts)
        slot = harness.client_send(ApiKey.TXN_OFFSET_COMMIT, 5, request)
        harness.pass_time(100)
        answer = harness.response(slot)
        assert answer is not None
        found = {one.name: one.partitions[0].error_code for one in answer.topics}
        return [found[name] for name in topics]

    assert errors("none") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    expected = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert errors("none", "t") == expected


def test_a_transactional_batch_without_a_producer_id_is_not_verified(harness: BrokerHarness) -> None:
    """As in Kafka, which writes it: there is no producer to ask about, or to differ from another one."""
    batch = records(2, attributes=TRANSACTIONAL)
    request = harness.produce_request("t", {0: batch})
    request.transactional_id = "id"
    answer = harness.client_ask(ApiKey.PRODUCE, 12, request).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_a_batch_that_is_cut_belongs_to_no_transaction(harness: BrokerHarness) -> None:
    batch = bytearray(records(2))
    batch[ATTRIBUTES_LOW_AT] |= TRANSACTIONAL
    whole, cut = (harness.produce("t", bytes(one)) for one in (batch, batch[:-1]))
    codes = [one.error_code for one in (whole, cut)]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.INVALID_RECORD]


def test_a_verified_request_is_freed_without_a_collection_of_garbage(harness: BrokerHarness) -> None:
    topic = TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, 1)])
    gc.collect()
    gc.disable()
    try:
        slot = harness.client_send(
            ApiKey.TXN_OFFSET_COMMIT, 5, TxnOffsetCommitRequest("id", "g", 7, 0, topics=[topic])
        )
        harness.pass_time(100)
        assert harness.response(slot) is not None
        left = [
            one.__qualname__
            for one in gc.get_objects()
            if isfunction(one) and one.__qualname__.startswith("Verifications.") and one.__closure__
        ]
    finally:
        gc.enable()
    assert not left


def init_producer(harness: BrokerHarness) -> Any:
    slot = harness.client_send(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest("id", 60_000))
    harness.pass_time(100)
    return harness.response(slot)


def transactional(
    harness: BrokerHarness, producer_id: int, epoch: int, *, sequence: int = 0
) -> ProduceRequest:
    """Two records of a transaction."""
    batch = records(
        2,
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    request = harness.produce_request("t", {0: bytes(batch)}, acks=-1)
    request.transactional_id = "id"
    return request


def code(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


def step(harness: BrokerHarness, key: int, version: int, request: Any) -> int:
    """Have the node take a request, and no later callback; return its slot."""
    frame = b"".join(encode_request(key, version, 1, "test", request))[4:]
    slot = len(harness.asked)
    harness.asked[slot] = (key, version)
    harness.executor.step(FramesReceived(CONNECTION, slot, [memoryview(frame)], AT.listener, "127.0.0.1"))
    return slot


def test_the_answer_to_an_end_leaves_before_the_markers_are_written(harness: BrokerHarness) -> None:
    own = init_producer(harness)
    begun = transactional(harness, own.producer_id, own.producer_epoch)
    slot = harness.client_send(ApiKey.PRODUCE, 12, begun)
    harness.pass_time(100)
    assert not code(harness.response(slot))
    partition = harness.broker.replicas.get("t", 0).partition  # type: ignore[union-attr]
    assert partition is not None
    states: list[tuple[int, int, int]] = []

    def flush() -> None:
        states.append((len(harness.wire.responses), partition.log_end_offset, partition.last_stable_offset))

    harness.wire.flush = flush  # type: ignore[method-assign]
    slot = step(harness, ApiKey.END_TXN, 4, EndTxnRequest("id", own.producer_id, own.producer_epoch, True))
    assert not harness.response(slot).error_code
    assert states[0] == (len(harness.wire.responses), 2, 0)
    assert (partition.log_end_offset, partition.last_stable_offset) == (3, 3)


def test_batches_wait_for_those_of_their_connection_that_are_verified_again__kip890(
    harness: BrokerHarness,
) -> None:
    own = init_producer(harness)
    slot = harness.client_send(ApiKey.PRODUCE, 12, transactional(harness, own.producer_id, 0))
    harness.pass_time(100)
    assert not code(harness.response(slot))
    end = EndTxnRequest("id", own.producer_id, 0, True)
    ended = harness.response(step(harness, ApiKey.END_TXN, 5, end))
    assert (ended.error_code, ended.producer_epoch) == (0, 1)
    # the coordinator refuses this one at first, since the former transaction has no marker yet
    slots = [step(harness, ApiKey.PRODUCE, 12, transactional(harness, own.producer_id, 1))]
    harness.timer.run_soon()
    slots += [
        step(harness, ApiKey.PRODUCE, 12, transactional(harness, own.producer_id, 1, sequence=sequence))
        for sequence in (2, 4)
    ]
    harness.pass_time(100)
    assert [code(harness.response(slot)) for slot in slots] == [0, 0, 0]


def test_aborted_transactions_are_listed_as_far_as_the_records_of_an_answer(harness: BrokerHarness) -> None:
    own = init_producer(harness)
    for epoch in range(3):
        slot = harness.client_send(ApiKey.PRODUCE, 12, transactional(harness, own.producer_id, epoch))
        harness.pass_time(100)
        assert not code(harness.response(slot))
        slot = step(harness, ApiKey.END_TXN, 5, EndTxnRequest("id", own.producer_id, epoch, False))
        harness.pass_time(100)
        assert not harness.response(slot).error_code
    for offset, max_bytes, aborted in ((0, 1 << 25, [0, 3, 6]), (0, 1, [0]), (2, 1, [0]), (4, 1, [3])):
        data = harness.read("t", offset, max_bytes=max_bytes, isolation_level=1)
        assert len(data.records)
        assert [one.first_offset for one in data.aborted_transactions] == aborted
