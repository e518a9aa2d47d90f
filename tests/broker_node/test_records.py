"""Records of a broker's partitions: produced, fetched, listed and deleted, without a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.answers import client_fetches
from kraftd.ground import pace
from kraftd.ground.event import Event
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.fetch_request import FetchRequest, ForgottenTopic
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.requests.effects import ReadFrame, ScheduleSlice
from kraftd.requests.events import ConnectionClosed, SliceDue
from kraftd.types import METADATA_TOPIC
from kraftd.wire import batch as batches
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import CONNECTION, SCHEDULES, BrokerHarness, records
from tests.controller_node.harness import START_MS


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 4)
    return harness


def read_values(harness: BrokerHarness, topic: str = "t", index: int = 0) -> list[bytes]:
    data = harness.read(topic, index=index)
    assert not data.error_code, data
    return [bytes(one.value or b"") for batch in iter_batches(data.records) for one in batches.records(batch)]


def list_offset(harness: BrokerHarness, timestamp: int, topic: str = "t", index: int = 0) -> Any:
    partition = ListOffsetsPartition(index, -1, timestamp)
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, [partition])])
    return harness.client_ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0]


def delete_records(harness: BrokerHarness, topic: str, offset: int) -> Any:
    partition = DeleteRecordsPartition(0, offset)
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [partition])], 1_000)
    return harness.client_ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


# -- produce


@pytest.mark.parametrize("acks", [1, -1])
def test_what_is_produced_is_read(harness: BrokerHarness, acks: int) -> None:
    assert harness.produce("t", records(2), acks=acks).base_offset == 0
    answer = harness.produce("t", records(1), acks=acks)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 2, 0)
    assert read_values(harness) == [b"v0", b"v1", b"v0"]
    assert len(harness.broker.produces) == 0


def test_a_produce_without_acks_is_written_and_not_answered(harness: BrokerHarness) -> None:
    slot = harness.client_send(ApiKey.PRODUCE, 12, harness.produce_request("t", {0: records()}, acks=0))
    assert harness.wire.responses[slot] == b"" and not harness.wire.closed
    assert read_values(harness) == [b"v0"]


def test_an_error_without_acks_closes_that_connection_alone(harness: BrokerHarness) -> None:
    request = harness.produce_request("unknown", {0: records()}, acks=0)
    harness.client_send(ApiKey.PRODUCE, 12, request, connection_id=51)
    assert list(harness.wire.closed) == [51]
    assert harness.produce("t", records()).base_offset == 0


@pytest.mark.parametrize(
    ("topic", "index", "batch", "acks", "error"),
    [
        ("unknown", 0, records(), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 4, records(), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, records(), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, records(), 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("t", 0, b"", 1, ErrorCode.INVALID_RECORD),
        ("t", 0, None, 1, ErrorCode.INVALID_RECORD),
        ("t", 0, b"garbage" * 20, 1, ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, records()[:-1] + b"\xff", 1, ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, records() + records(), 1, ErrorCode.INVALID_RECORD),
        (METADATA_TOPIC, 0, records(), 1, ErrorCode.POLICY_VIOLATION),
        ("__consumer_offsets", 0, records(), 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_refused_produce_leaves_the_others_of_its_request(
    harness: BrokerHarness, topic: str, index: int, batch: Any, acks: int, error: ErrorCode
) -> None:
    if topic == "__consumer_offsets":
        harness.create_topic(topic, 1)
    request = harness.produce_request(topic, {index: batch}, acks)
    request.topic_data += harness.produce_request("t", {1: records()}).topic_data
    answer = harness.client_ask(ApiKey.PRODUCE, 12, request)
    refused, other = (one.partition_responses[0] for one in answer.responses)
    assert refused.error_code == error
    assert refused.base_offset == -1
    is_for_all = error is ErrorCode.INVALID_REQUIRED_ACKS
    assert other.error_code == (error if is_for_all else 0)
    assert read_values(harness, index=1) == ([] if is_for_all else [b"v0"])
    assert not harness.wire.closed


@pytest.mark.parametrize("version", [12, 13])
def test_records_for_a_new_topic_never_enter_the_log_of_the_former_one(
    harness: BrokerHarness, version: int
) -> None:
    deletion = DeleteTopicsRequest([], ("t",), 30_000)
    harness.ask(ApiKey.DELETE_TOPICS, 5, deletion, 8)
    creation = CreateTopicsRequest([CreatableTopic("t", 1, 1)], 30_000)
    harness.ask(ApiKey.CREATE_TOPICS, 7, creation, 8)  # the broker has not followed either change yet
    new_id = harness.node.image.topic_names()["t"]

    def produce() -> Any:
        place = ("", new_id) if version == 13 else ("t",)
        topic = TopicProduceData(*place, partition_data=[PartitionProduceData(0, records())])
        answer = harness.client_ask(ApiKey.PRODUCE, version, ProduceRequest(None, 1, 1_000, [topic]))
        return answer.responses[0].partition_responses[0].error_code

    assert produce() == ErrorCode.UNKNOWN_TOPIC_ID
    harness.pass_time(10)
    assert produce() == 0
    assert read_values(harness) == [b"v0"]


def test_records_for_a_deleted_topic_are_not_acknowledged(harness: BrokerHarness) -> None:
    harness.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest([], ("t",), 30_000), 8)
    assert harness.broker.replicas.get("t", 0) is not None  # the broker has not followed the change yet
    assert harness.produce("t", records()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_min_insync_replicas_asks_for_no_more_than_there_are(harness: BrokerHarness) -> None:
    harness.create_topic("strict", min_insync_replicas="2")
    assert harness.produce("strict", records(), acks=-1).error_code == 0


def test_a_batch_of_an_idempotent_producer_is_written_once(harness: BrokerHarness) -> None:
    batch = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    assert harness.produce("t", records(2, **batch), acks=-1).base_offset == 0
    assert harness.produce("t", records(2, **batch), acks=-1).base_offset == 0
    out_of_order = harness.produce("t", records(1, **batch | {"base_sequence": 5}), acks=-1)
    assert out_of_order.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert read_values(harness) == [b"v0", b"v1"]


def test_producers_that_have_been_idle_are_forgotten_while_the_broker_runs(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker={"producer.id.expiration.ms": "90000"}).run()
    harness.create_topic("t")
    batch = records(2, producer_id=4000, producer_epoch=0, base_sequence=0)
    later = records(1, producer_id=4000, producer_epoch=0, base_sequence=7)
    assert harness.produce("t", batch).base_offset == 0
    harness.pass_time(SCHEDULES.producer_id_expiration_check_interval_ms + 10)
    assert harness.produce("t", later).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    harness.pass_time(SCHEDULES.producer_id_expiration_check_interval_ms)
    assert harness.produce("t", later).base_offset == 2, "a producer that is not known begins anywhere"


def test_a_produce_of_many_partitions_is_answered_for_each(harness: BrokerHarness) -> None:
    request = harness.produce_request("t", {n: records(n + 1) for n in range(4)}, acks=-1)
    answer = harness.client_ask(ApiKey.PRODUCE, 12, request)
    parts = answer.responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in parts] == [(n, 0, 0) for n in range(4)]
    assert [len(read_values(harness, index=n)) for n in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_large_produce_takes_many_callbacks_and_keeps_the_order(harness: BrokerHarness, acks: int) -> None:
    """400 partitions are judged and written in slices; what comes behind on the connection waits."""
    harness.create_topic("wide", 400)
    slices = 0
    step = harness.executor.step

    def count(event: Event) -> None:
        nonlocal slices
        slices += isinstance(event, SliceDue)
        step(event)

    harness.executor.step = count  # type: ignore[method-assign]
    harness.executor.performers[ScheduleSlice] = lambda _: harness.timer.call_soon(count, SliceDue())
    large = harness.produce_request("wide", {n: records() for n in range(400)}, acks)
    behind = harness.produce_request("wide", {399: records()}, acks)
    first = harness.client_send(ApiKey.PRODUCE, 12, large, behind)
    parts = harness.response(first).responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in parts] == [(n, 0, 0) for n in range(400)]
    assert harness.response(first + 1).responses[0].partition_responses[0].base_offset == 1
    assert slices > 10 and len(harness.broker.produces) == 0


def test_records_of_few_batches_take_no_further_callback_however_large_they_are(
    harness: BrokerHarness,
) -> None:
    """A thread that decodes the frame, or a slice, would cost more than all that is to do."""
    large = harness.produce_request("t", {0: records(60_000), 1: records(2)})
    asked: list[object] = []
    for effect in (ScheduleSlice, ReadFrame):
        harness.executor.performers[effect] = asked.append
    first = harness.client_send(ApiKey.PRODUCE, 12, large, harness.produce_request("t", {0: records()}))
    answers = [harness.response(first + n).responses[0].partition_responses[0] for n in range(2)]
    assert [(one.error_code, one.base_offset) for one in answers] == [(0, 0), (0, 60_000)]
    assert not asked


def test_the_same_partition_twice_in_a_request_is_written_twice(harness: BrokerHarness) -> None:
    request = harness.produce_request("t", {0: records()})
    request.topic_data += harness.produce_request("t", {0: records()}).topic_data
    answer = harness.client_ask(ApiKey.PRODUCE, 12, request)
    offsets = [one.partition_responses[0].base_offset for one in answer.responses]
    assert offsets == [0, 1]


def test_an_empty_produce_is_answered(harness: BrokerHarness) -> None:
    assert harness.client_ask(ApiKey.PRODUCE, 12, ProduceRequest(None, 1, 1_000, [])).responses == []


def test_a_transactional_batch_is_refused_while_there_are_no_transactions(harness: BrokerHarness) -> None:
    batch = records(producer_id=7, producer_epoch=0, base_sequence=0, attributes=0x10)
    request = harness.produce_request("t", {0: batch}, acks=-1)
    request.transactional_id = "x"
    answer = harness.client_ask(ApiKey.PRODUCE, 12, request)
    assert answer.responses[0].partition_responses[0].error_code
    assert read_values(harness) == []


# -- fetch


def test_a_parked_fetch_gets_the_records_of_all_partitions_of_one_produce(harness: BrokerHarness) -> None:
    harness.create_topic("many", 3)
    first = harness.fetch_request("many", {0: 0, 1: 0, 2: 0}, max_wait_ms=0, session_epoch=0)
    session_id = harness.client_ask(ApiKey.FETCH, 12, first).session_id
    request = harness.fetch_request("many", {}, session_id=session_id, session_epoch=1)
    slot = harness.client_send(ApiKey.FETCH, 12, request)
    assert harness.response(slot) is None
    batches = {index: records() for index in range(3)}
    harness.client_ask(ApiKey.PRODUCE, 12, harness.produce_request("many", batches, 1))
    (topic,) = harness.response(slot).responses
    assert [len(one.records) for one in topic.partitions] == [len(records())] * 3


def test_a_fetch_is_parked_until_records_come(harness: BrokerHarness) -> None:
    slot = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    assert slot not in harness.wire.responses
    harness.produce("t", records(), index=1)
    assert slot not in harness.wire.responses
    harness.produce("t", records())
    assert harness.response(slot).responses[0].partitions[0].high_watermark == 1


def test_a_produce_is_answered_before_parked_fetches_read(harness: BrokerHarness) -> None:
    waits = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    produced = harness.client_send(ApiKey.PRODUCE, 12, harness.produce_request("t", {0: records()}))
    assert {produced, waits} <= set(harness.wire.responses)
    assert harness.wire.flushed == {*harness.wire.responses} - {waits}


def test_a_parked_fetch_is_answered_after_its_wait(harness: BrokerHarness) -> None:
    slot = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    harness.pass_time(499)
    assert slot not in harness.wire.responses
    harness.pass_time(1)
    (partition,) = harness.response(slot).responses[0].partitions
    assert (partition.error_code, partition.records) == (0, b"")


def test_requests_share_a_look_for_deadlines_which_comes_after_them(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = harness.broker.deadline_ms

    def counted() -> int | None:
        nonlocal looks
        looks += 1
        return look()

    monkeypatch.setattr(harness.broker, "deadline_ms", counted)
    for _ in range(20):
        harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    slot = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}, max_wait_ms=20))
    assert looks == 0 and harness.response(slot) is None
    harness.pass_time(1)
    assert looks == 1
    harness.pass_time(20)
    assert harness.response(slot) is not None


def test_a_fetch_waits_for_its_min_bytes(harness: BrokerHarness) -> None:
    batch = records()
    request = harness.fetch_request("t", {0: 0, 1: 0}, min_bytes=2 * len(batch))
    slot = harness.client_send(ApiKey.FETCH, 12, request)
    harness.produce("t", batch)
    assert slot not in harness.wire.responses
    harness.produce("t", batch, index=1)
    parts = harness.response(slot).responses[0].partitions
    assert [len(one.records) for one in parts] == [len(batch)] * 2


def test_a_fetch_behind_the_newest_segment_waits_for_no_more(harness: BrokerHarness) -> None:
    """As in Kafka, a reader that catches up gets what there is at once, however large its min bytes."""
    harness.produce("t", records())
    harness.produce("t", records())
    much = {"min_bytes": 1 << 20, "max_wait_ms": 500}
    newest = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}, **much))
    assert harness.response(newest) is None
    harness.directories.logs["t", 0].roll(START_MS)
    harness.produce("t", records())
    parts = harness.response(newest).responses[0].partitions
    assert [len(one.records) for one in parts] == [2 * len(records())], "the roll answers it"
    behind = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 1}, **much))
    assert harness.response(behind) is not None
    at_the_end = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 2}, **much))
    assert harness.response(at_the_end) is None


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_fetch_waits_no_longer_for_a_topic_that_is_deleted(
    harness: BrokerHarness, session_epoch: int
) -> None:
    """As in Kafka. It waits beside a topic that there was not when it came."""
    harness.create_topic("gone")
    request = harness.fetch_request("t", {0: 0}, session_epoch=session_epoch)
    for name in ("gone", "never"):
        request.topics += harness.fetch_request(name, {0: 0}).topics
    slot = harness.client_send(ApiKey.FETCH, 12, request)
    assert harness.response(slot) is None
    harness.delete_topic("gone")
    found = {one.topic: one.partitions[0].error_code for one in harness.response(slot).responses}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == {"t": 0, "gone": unknown, "never": unknown}


def test_a_negative_epoch_of_a_fetch_is_none(harness: BrokerHarness) -> None:
    """As in Kafka; ListOffsets and OffsetForLeaderEpoch refuse those below -1."""
    harness.produce("t", records(3))
    for current, last in ((-2, -1), (-100, -1), (-1, -2)):
        request = harness.fetch_request("t", {0: 3}, max_wait_ms=0)
        (partition,) = request.topics[0].partitions
        partition.current_leader_epoch, partition.last_fetched_epoch = current, last
        (found,) = harness.client_ask(ApiKey.FETCH, 12, request).responses[0].partitions
        assert (found.error_code, found.high_watermark, found.diverging_epoch.epoch) == (0, 3, -1)
    listed = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -2, -1)])])
    (topic,) = harness.client_ask(ApiKey.LIST_OFFSETS, 7, listed).topics
    assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_an_offset_out_of_range_is_answered_at_once(harness: BrokerHarness) -> None:
    assert harness.read("t", 1, max_wait_ms=500).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.read("t", -5, max_wait_ms=500).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_session_shows_only_what_is_new(harness: BrokerHarness) -> None:
    harness.create_topic("many", 200)
    everything = dict.fromkeys(range(200), 0)
    request = harness.fetch_request("many", everything, session_epoch=0, max_wait_ms=0)
    full = harness.client_ask(ApiKey.FETCH, 12, request)
    assert full.session_id and len(full.responses[0].partitions) == 200
    slot = harness.client_send(
        ApiKey.FETCH, 12, harness.fetch_request("many", {}, session_id=full.session_id, session_epoch=1)
    )
    harness.produce("many", records(), index=137)
    (topic,) = harness.response(slot).responses
    assert [one.partition_index for one in topic.partitions] == [137]
    forget = harness.fetch_request(
        "many", {137: 1}, session_id=full.session_id, session_epoch=2, max_wait_ms=0
    )
    forget.forgotten_topics_data = [ForgottenTopic("many", partitions=tuple(range(100)))]
    assert harness.client_ask(ApiKey.FETCH, 12, forget).responses == []
    harness.produce("many", records(), index=3)
    next_one = harness.fetch_request("many", {}, session_id=full.session_id, session_epoch=3, max_wait_ms=0)
    assert harness.client_ask(ApiKey.FETCH, 12, next_one).responses == []


def test_records_that_are_not_in_memory_are_read_by_a_thread(harness: BrokerHarness) -> None:
    harness.produce("t", records(3))
    log = harness.directories.logs["t", 0]
    log.forget_tail()
    harness.disk.is_cached = False
    harness.threads.held = []
    slot = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    assert slot not in harness.wire.responses and len(harness.threads.held) == 1
    harness.threads.held[0]()
    harness.timer.run_soon()
    assert len(harness.response(slot).responses[0].partitions[0].records)


def test_a_fetch_is_bounded_by_its_max_bytes_and_has_at_least_a_batch(harness: BrokerHarness) -> None:
    batch = records(50)
    for n in range(4):
        harness.produce("t", batch, index=n)
    request = harness.fetch_request("t", dict.fromkeys(range(4), 0), max_bytes=10, max_wait_ms=0)
    parts = harness.client_ask(ApiKey.FETCH, 12, request).responses[0].partitions
    assert [len(one.records) for one in parts] == [len(batch), 0, 0, 0]


@pytest.mark.parametrize("in_memory", [True, False])
def test_only_the_first_batch_of_a_fetch_may_exceed_the_size_of_its_partition(
    harness: BrokerHarness, in_memory: bool
) -> None:
    for index in range(3):
        harness.produce("t", records(100), index=index)
    if not in_memory:
        for index in range(3):
            harness.directories.logs["t", index].forget_tail()
    request = harness.fetch_request("t", dict.fromkeys(range(3), 0), max_wait_ms=0)
    for partition in request.topics[0].partitions:
        partition.partition_max_bytes = 100
    answer = harness.client_ask(ApiKey.FETCH, 12, request)
    assert [bool(one.records) for one in answer.responses[0].partitions] == [True, False, False]


def test_the_metadata_log_is_read_like_a_topic(harness: BrokerHarness) -> None:
    answer = harness.read(METADATA_TOPIC, 0, max_bytes=1 << 20)
    assert not answer.error_code and len(list(iter_batches(answer.records)))
    both = harness.fetch_request(METADATA_TOPIC, {0: 0}, max_wait_ms=0)
    harness.produce("t", records())
    both.topics += harness.fetch_request("t", {0: 0}).topics
    topics = harness.client_ask(ApiKey.FETCH, 12, both).responses
    assert [len(one.partitions[0].records) > 0 for one in topics] == [True, True]


def test_a_closed_connection_leaves_nothing_that_waits(harness: BrokerHarness) -> None:
    for n in range(10):
        harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}), connection_id=60 + n)
    assert harness.broker.client_fetches.parked.deadline_ms() is not None
    for n in range(10):
        harness.broker_step(ConnectionClosed(60 + n))
    assert harness.broker.client_fetches.parked.deadline_ms() is None
    harness.produce("t", records())
    assert all(slot not in harness.wire.responses for slot in range(10))


# -- offsets and deletion


def test_offsets_are_listed_by_name_and_by_time(harness: BrokerHarness) -> None:
    harness.produce("t", records(3))
    harness.produce("t", records(1, timestamp_ms=START_MS + 10))
    earliest, latest, largest = (list_offset(harness, one) for one in (-2, -1, -3))
    assert (earliest.offset, latest.offset) == (0, 4)
    assert (largest.offset, largest.timestamp) == (3, START_MS + 10)
    found = list_offset(harness, START_MS + 1)
    assert (found.offset, found.timestamp, found.leader_epoch) == (1, START_MS + 1, 0)
    none = list_offset(harness, START_MS + 11)
    assert (none.error_code, none.offset, none.timestamp) == (0, -1, -1)
    assert list_offset(harness, -1, "unknown").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_a_topic_are_listed_together_wherever_they_are_named(harness: BrokerHarness) -> None:
    harness.create_topic("wide", 3)
    harness.produce("wide", records(2), index=2)
    named = (("wide", (0, 1)), ("t", ()), ("none", (0,)), ("wide", (2, 1)))
    topics = [
        ListOffsetsTopic(name, [ListOffsetsPartition(index, -1, -1) for index in indexes])
        for name, indexes in named
    ]
    answer = harness.client_ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, 0, topics))
    listed = [
        (topic.name, [(one.partition_index, one.error_code, one.offset) for one in topic.partitions])
        for topic in answer.topics
    ]
    repeated, unknown = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listed == [("wide", [(0, 0, 0), (1, repeated, -1), (2, 0, 2)]), ("none", [(0, unknown, -1)])]


def test_offsets_of_many_partitions_are_searched_in_several_callbacks(harness: BrokerHarness) -> None:
    harness.create_topic("wide", 250)
    harness.produce("wide", records(2), index=249)
    asked = [ListOffsetsPartition(n, -1, START_MS) for n in range(250)]
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("wide", asked)])
    (topic,) = harness.client_ask(ApiKey.LIST_OFFSETS, 7, request).topics
    assert [one.offset for one in topic.partitions] == [-1] * 249 + [0]


def test_records_are_deleted_up_to_an_offset(harness: BrokerHarness) -> None:
    for _ in range(3):
        harness.produce("t", records(2))
    assert delete_records(harness, "t", 9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    answer = delete_records(harness, "t", 3)
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    assert harness.read("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert list_offset(harness, -2).offset == 3
    everything = delete_records(harness, "t", -1)
    assert everything.low_watermark == 6 and read_from(harness, 6) == b""
    assert harness.produce("t", records()).base_offset == 6
    compacted = "compacted"
    harness.create_topic(compacted, cleanup_policy="compact")
    assert delete_records(harness, compacted, 0).error_code == ErrorCode.POLICY_VIOLATION
    assert delete_records(harness, METADATA_TOPIC, 0).error_code == ErrorCode.POLICY_VIOLATION


def test_of_partitions_named_repeatedly_the_last_offset_counts(harness: BrokerHarness) -> None:
    """As in Kafka, whose answer has each partition once, and no topic without partitions."""
    harness.produce("t", records(4))
    rows = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)]) for offset in (99, 2)]
    request = DeleteRecordsRequest([DeleteRecordsTopic("none", []), *rows], 1_000)
    (topic,) = harness.client_ask(ApiKey.DELETE_RECORDS, 2, request).topics
    (row,) = topic.partitions
    assert (topic.name, row.error_code, row.low_watermark) == ("t", ErrorCode.NONE, 2)


def read_from(harness: BrokerHarness, offset: int) -> bytes:
    data = harness.read("t", offset)
    assert not data.error_code
    return bytes(data.records)


def test_expired_records_move_the_first_offset_that_is_listed(harness: BrokerHarness) -> None:
    """A consumer that begins with the earliest record is not out of range."""
    harness.create_topic("short", retention_ms="1000", segment_ms="1000")
    for _ in range(3):
        harness.produce("short", records(2))
        harness.pass_time(1_500)
    harness.produce("short", records())
    harness.pass_time(SCHEDULES.log_retention_check_interval_ms + 1_000)
    earliest = list_offset(harness, -2, "short").offset
    assert earliest > 0
    assert harness.read("short", earliest).error_code == 0
    assert harness.read("short").error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_topic_that_is_deleted_and_made_again_is_empty(harness: BrokerHarness) -> None:
    harness.produce("t", records(5))
    parked = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 5}, max_wait_ms=60_000))
    harness.delete_topic("t")
    (partition,) = harness.response(parked).responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.produce("t", records()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not harness.directories.logs
    harness.create_topic("t")
    assert harness.produce("t", records()).base_offset == 0
    assert read_values(harness) == [b"v0"]
    assert len(harness.broker.replicas) == 1
    names = harness.disk.list_others("/data") | harness.disk.list_others("/data-2")
    assert sum("-delete" in name for name in names) == 4
    harness.pass_time(62_000)  # file.delete.delay.ms
    names = harness.disk.list_others("/data") | harness.disk.list_others("/data-2")
    assert not [name for name in names if "-delete" in name]


def test_a_malformed_frame_closes_its_connection_alone(harness: BrokerHarness) -> None:
    slot = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    for n, frame in enumerate(
        (b"", b"\x00", b"\x00\x00\x00\x0c\xff\xff", b"\x00\x00\x00\x09" + b"\xff" * 40)
    ):
        harness.send_frame_to_broker([frame], 70 + n)
    assert sorted(harness.wire.closed) == [70, 71, 72, 73]
    assert CONNECTION not in harness.wire.closed
    harness.produce("t", records())
    assert harness.response(slot) is not None


class TestANewLog:
    """Metadata names a leader before a thread has made its log."""

    @pytest.fixture
    def making(self, harness: BrokerHarness) -> Any:
        """What threads are to do, once the test does it."""
        harness.threads.held = making = []
        harness.create_topic("new", 2)
        assert making
        return making

    def make_logs(self, harness: BrokerHarness, making: Any) -> None:
        harness.threads.held = None
        for make in making:
            make()
        harness.pass_time(10)

    def test_a_produce_waits_for_it_and_later_ones_of_the_connection_wait_behind(
        self, harness: BrokerHarness, making: Any
    ) -> None:
        requests = [harness.produce_request(name, {0: records(1)}) for name in ("new", "t", "new")]
        slot = harness.client_send(ApiKey.PRODUCE, 12, *requests)
        harness.pass_time(10)
        assert [harness.response(slot + n) for n in range(3)] == [None] * 3
        self.make_logs(harness, making)
        parts = [harness.response(slot + n).responses[0].partition_responses[0] for n in range(3)]
        assert [(one.error_code, one.base_offset) for one in parts] == [(0, 0), (0, 0), (0, 1)]
        assert not harness.broker.replicas.opening_count

    def test_a_produce_to_other_logs_does_not_wait(self, harness: BrokerHarness, making: Any) -> None:
        harness.threads.held = None
        held = harness.client_send(
            ApiKey.PRODUCE, 12, harness.produce_request("new", {0: records(1)}), connection_id=CONNECTION + 1
        )
        assert harness.produce("t", records(1)).error_code == 0 and harness.response(held) is None
        self.make_logs(harness, making)
        assert harness.response(held) is not None

    def test_a_follower_without_its_log_names_the_leader_at_once(
        self, harness: BrokerHarness, making: Any
    ) -> None:
        (hosted,) = (one for one in harness.broker.replicas if (one.topic, one.index) == ("new", 0))
        hosted.state = msgspec.structs.replace(hosted.state, leader=101)
        assert harness.produce("new", records(1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_a_produce_waits_for_its_timeout_at_most(self, harness: BrokerHarness, making: Any) -> None:
        request = harness.produce_request("new", {1: records(1)}, timeout_ms=300)
        slot = harness.client_send(ApiKey.PRODUCE, 12, request)
        harness.pass_time(200)
        assert harness.response(slot) is None
        harness.pass_time(200)
        (part,) = harness.response(slot).responses[0].partition_responses
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.make_logs(harness, making)
        assert harness.produce("new", records(1), index=1).base_offset == 0


def test_a_fetch_after_the_answer_to_a_produce_has_its_records(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the sessions that read the partition are so many that they are looked after in slices."""
    monkeypatch.setattr(client_fetches, "FETCH_US", pace.MAX_SLICE_WORK_US)
    sessions = [
        harness.client_ask(
            ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}, max_wait_ms=0, session_epoch=0)
        )
        for _ in range(3)
    ]
    with monkeypatch.context() as held:
        held.setattr(harness.timer, "run_soon", lambda: None)
        assert not harness.produce("t", records(1)).error_code
        for one in sessions:
            request = FetchRequest(session_id=one.session_id, session_epoch=1, max_bytes=1 << 20)
            slot = harness.client_send(ApiKey.FETCH, 12, request)
            answer = harness.response(slot)
            assert answer.responses and answer.responses[0].partitions[0].records
