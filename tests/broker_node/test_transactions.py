"""What transactional requests are refused with, as by a stock broker."""

from __future__ import annotations

import gc
from inspect import isfunction
from pathlib import Path

import pytest

from kraftd.broker_node.apis.api_00_produce import ATTRIBUTES_LOW_AT
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
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
from kraftd.partition.producer_entry import TRANSACTIONAL
from kraftd.requests.events import FramesReceived
from kraftd.wire.api import ApiKey
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


@pytest.mark.parametrize("producer", [(-1, -1), (-1, 0), (7, -1)])
def test_a_marker_of_no_producer_is_refused(harness: BrokerHarness, producer: tuple[int, int]) -> None:
    marker = WritableTxnMarker(*producer, True, [WritableTxnMarkerTopic("t", (0,))], 0)
    answer = harness.client_ask(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
    (row,) = answer.markers[0].topics[0].partitions
    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not harness.read("t").records


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


def test_the_answer_to_an_end_leaves_before_the_markers_are_written(harness: BrokerHarness) -> None:
    slot = harness.client_send(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest("id", 60_000))
    harness.pass_time(100)
    own = harness.response(slot)
    batch = records(
        2,
        attributes=TRANSACTIONAL,
        producer_id=own.producer_id,
        producer_epoch=own.producer_epoch,
        base_sequence=0,
    )
    request = harness.produce_request("t", {0: bytes(batch)}, acks=-1)
    request.transactional_id = "id"
    slot = harness.client_send(ApiKey.PRODUCE, 12, request)
    harness.pass_time(100)
    assert not harness.response(slot).responses[0].partition_responses[0].error_code
    end = EndTxnRequest("id", own.producer_id, own.producer_epoch, True)
    frame = b"".join(encode_request(ApiKey.END_TXN, 4, 1, "test", end))[4:]
    slot = len(harness.asked)
    harness.asked[slot] = (ApiKey.END_TXN, 4)
    harness.executor.step(FramesReceived(CONNECTION, slot, [memoryview(frame)], AT.listener, "127.0.0.1"))
    assert not harness.response(slot).error_code
    partition = harness.broker.replicas.get("t", 0).partition  # type: ignore[union-attr]
    assert partition is not None
    assert (partition.log_end_offset, partition.last_stable_offset) == (2, 0)
    harness.timer.run_soon()
    assert (partition.log_end_offset, partition.last_stable_offset) == (3, 3)
