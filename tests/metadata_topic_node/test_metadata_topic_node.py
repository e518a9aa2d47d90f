"""A client listener's answers: metadata, the metadata log as a topic, and requests that it forwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.answers.effects import Answered
from kraftd.answers.forwarding import RETRY_MS
from kraftd.answers.log_source import MAX_READ_BYTES
from kraftd.answers.settings import ClientSettings
from kraftd.host.cluster_view import NodeView
from kraftd.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.list_offsets_response import ListOffsetsPartitionResponse
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.metadata_topic_node.routes import client_registry
from kraftd.metadata_topic_node.to_broker import BROKER_WAIT_MS
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from tests.metadata_topic_node.clients import CLIENT, ClientHarness, consuming


@pytest.fixture
def harness(tmp_path: Path) -> ClientHarness:
    """A leader with broker 1 and the topic t of two partitions."""
    leader = ClientHarness(tmp_path)
    leader.start()
    leader.unfenced(1)
    leader.create("t", partitions=2)
    return leader


def metadata(harness: ClientHarness, *names: str, version: int = 13) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer = harness.client_ask(ApiKey.METADATA, version, MetadataRequest(topics))
    assert isinstance(answer, MetadataResponse)
    return answer


def all_metadata(harness: ClientHarness) -> MetadataResponse:
    answer = harness.client_ask(ApiKey.METADATA, 13, MetadataRequest(None))
    assert isinstance(answer, MetadataResponse)
    return answer


def only(answer: object) -> PartitionData:
    (topic,) = answer.responses  # type: ignore[attr-defined]
    (partition,) = topic.partitions
    assert isinstance(partition, PartitionData)
    return partition


@pytest.mark.parametrize("version", range(14))
def test_metadata_has_brokers_topics_and_leader_epochs(harness: ClientHarness, version: int) -> None:
    answer = metadata(harness, "t", version=version)
    assert [(one.node_id, one.port) for one in answer.brokers] == [(1, 9093)]
    (topic,) = answer.topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("t", 0, False)
    assert [(p.partition_index, p.leader_id, p.replica_nodes) for p in topic.partitions] == [
        (0, 1, (1,)),
        (1, 1, (1,)),
    ]
    assert {p.leader_epoch for p in topic.partitions} == ({0} if version >= 7 else {-1})
    if version >= 10:
        assert topic.topic_id == harness.node.image.topic_names()["t"]


def test_only_answers_with_the_metadata_topic_list_kraftd_as_a_node(harness: ClientHarness) -> None:
    assert [one.node_id for one in metadata(harness).brokers] == [1]
    for answer in (metadata(harness, METADATA_TOPIC, "t"), all_metadata(harness)):
        assert [(one.node_id, one.port) for one in answer.brokers] == [(1, 9093), (100, 9092)]
        assert answer.controller_id == 1
    (topic,) = metadata(harness, METADATA_TOPIC).topics
    assert topic.topic_id == METADATA_TOPIC_ID
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch) == (100, harness.node.core.epoch)
    assert sorted(one.name or "" for one in all_metadata(harness).topics) == [METADATA_TOPIC, "t"]


def test_metadata_topic_is_marked_internal_only_in_listings_of_all_topics(harness: ClientHarness) -> None:
    listed = {one.name: one.is_internal for one in all_metadata(harness).topics}
    assert listed == {METADATA_TOPIC: True, "t": False}
    (named,) = metadata(harness, METADATA_TOPIC).topics
    request = DescribeTopicPartitionsRequest([TopicRequest(METADATA_TOPIC)])
    (described,) = harness.client_ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request).topics
    assert (named.is_internal, described.is_internal) == (False, False)


def test_reader_of_only_the_metadata_log_gets_no_broker(harness: ClientHarness) -> None:
    by_id = [MetadataRequestTopic(METADATA_TOPIC_ID, None)]
    for topics in ([MetadataRequestTopic(bytes(16), METADATA_TOPIC)], by_id):
        answer = harness.client_ask(ApiKey.METADATA, 13, MetadataRequest(topics))
        assert [(one.node_id, one.port) for one in answer.brokers] == [(100, 9092)]
        assert answer.controller_id == 100
    assert [one.node_id for one in metadata(harness, METADATA_TOPIC, "missing").brokers] == [1, 100]


def test_unknown_topics_are_refused_and_not_created(harness: ClientHarness) -> None:
    answer = metadata(harness, "new", "not/valid")
    assert [one.error_code for one in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    request = MetadataRequest([MetadataRequestTopic(bytes(15) + b"\x09", name) for name in (None, "t", "u")])
    (topic,) = harness.client_ask(ApiKey.METADATA, 13, request).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert "new" not in harness.node.image.topic_names()


def test_metadata_of_many_topics_is_made_in_several_callbacks(harness: ClientHarness) -> None:
    for first in range(0, 3000, 1000):
        harness.create(*[f"many-{n}" for n in range(first, first + 1000)], partitions=2)
    before = harness.callbacks_run
    assert len(all_metadata(harness).topics) == 3002
    assert harness.callbacks_run - before >= 4


def test_metadata_of_a_topic_of_many_partitions_is_made_in_several_callbacks(harness: ClientHarness) -> None:
    harness.create("wide", partitions=9_000)
    before = harness.callbacks_run
    (topic,) = metadata(harness, "wide").topics
    assert [one.partition_index for one in topic.partitions] == list(range(9_000))
    assert harness.callbacks_run - before >= 8  # four callbacks describe them, four encode them


def test_an_epoch_that_is_not_on_disk_is_not_visible_to_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk delays the write of the node's new epoch; a crash would lose it."""
    harness = ClientHarness(tmp_path)
    monkeypatch.setattr(harness.storage, "persist_election", lambda state, version: None)
    harness.start()
    assert (harness.node.core.epoch, harness.node.core.leader_id) == (1, 100)
    assert (harness.view.epoch, harness.view.leader_id) == (0, None)
    data = only(harness.client_ask(ApiKey.FETCH, 17, consuming(0, epoch=1)))
    assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_metadata_waits_for_the_commit_of_pending_records(harness: ClientHarness) -> None:
    harness.sync_by_itself = False
    harness.create("uncommitted")
    place = harness.client_send(ApiKey.METADATA, 13, MetadataRequest([MetadataRequestTopic(name="t")]))
    assert harness.answer(place) is None
    harness.sync()
    assert harness.answer(place).topics[0].name == "t"


def test_the_metadata_log_is_read_as_a_topic_up_to_the_high_watermark(harness: ClientHarness) -> None:
    data = only(harness.client_ask(ApiKey.FETCH, 17, consuming(0)))
    assert (data.error_code, data.high_watermark) == (0, harness.view.high_watermark)
    batches = list(iter_batches(data.records or b""))
    assert batches[0].header.base_offset == 0 and batches[0].header.is_control
    assert batches[-1].header.next_offset == data.high_watermark
    harness.sync_by_itself = False
    harness.create("uncommitted")
    place = harness.client_send(ApiKey.FETCH, 17, consuming(data.high_watermark, max_wait_ms=500))
    assert harness.answer(place) is None
    harness.sync()
    woken = only(harness.answer(place))
    assert woken.records and woken.high_watermark == harness.view.high_watermark


def test_parked_fetch_is_answered_empty_after_max_wait(harness: ClientHarness) -> None:
    end_offset = harness.view.high_watermark
    place = harness.client_send(ApiKey.FETCH, 17, consuming(end_offset, max_wait_ms=100))
    assert harness.answer(place) is None
    harness.client_advance(100)
    assert not only(harness.answer(place)).records
    end_offset = harness.view.high_watermark
    harness.client_send(ApiKey.FETCH, 17, consuming(end_offset, max_wait_ms=100), connection_id=1001)
    assert len(harness.clients.fetches) == 1
    harness.client_closed(1001)
    assert not len(harness.clients.fetches)


@pytest.mark.parametrize(
    ("offset", "epoch", "error"),
    [
        (10_000, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (0, 99, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_fetch_errors_are_kafkas(harness: ClientHarness, offset: int, epoch: int, error: ErrorCode) -> None:
    data = only(harness.client_ask(ApiKey.FETCH, 17, consuming(offset, epoch=epoch)))
    assert data.error_code == error
    assert data.records == b""  # librdkafka cannot read null
    assert data.aborted_transactions is None  # as from a broker, whatever the isolation level


def test_fetch_of_the_log_reads_at_most_max_read_bytes(harness: ClientHarness) -> None:
    fetch = consuming(0)
    fetch.topics[0].partitions[0].partition_max_bytes = 1 << 30
    harness.client_ask(ApiKey.FETCH, 17, fetch)
    assert [one.max_bytes for effect in harness.reads for one in effect.reads] == [MAX_READ_BYTES]


def refused_fetch(harness: ClientHarness, topic_id: bytes, epoch: int, version: int) -> FetchResponse:
    fetch = consuming(0, epoch=epoch)
    fetch.topics[0].topic_id = topic_id
    answer = harness.client_ask(ApiKey.FETCH, version, fetch)
    assert isinstance(answer, FetchResponse)
    return answer


@pytest.mark.parametrize("version", [13, 15, 16, 18])
def test_refused_fetch_names_the_leader_and_its_endpoint__kip951(
    harness: ClientHarness, version: int
) -> None:
    def refusal(topic_id: bytes, epoch: int = -1) -> tuple[object, ...]:
        answer = refused_fetch(harness, topic_id, epoch, version)
        leader, nodes = only(answer).current_leader, answer.node_endpoints
        endpoints = [(one.node_id, one.host, one.port) for one in nodes]
        return only(answer).error_code, leader.leader_id, leader.leader_epoch, endpoints

    of_t, epoch = harness.node.image.topic_names()["t"], harness.node.core.epoch
    refused, fenced = refusal(of_t), refusal(METADATA_TOPIC_ID, 0)
    unknown = refusal(METADATA_TOPIC_ID, 99)
    assert unknown == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, [])
    if version < 16:
        assert refused == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, [])
        assert fenced == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1, [])
    else:
        assert refused == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 0, [(1, "127.0.0.1", 9093)])
        assert fenced == (ErrorCode.FENCED_LEADER_EPOCH, 100, epoch, [(100, "127.0.0.1", 9092)])


def test_observer_of_kafkas_controllers_names_itself_as_the_leader__kip951(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeView, "leader_id", 3000)  # a controller without a listener for clients
    answer = refused_fetch(harness, METADATA_TOPIC_ID, 0, 17)
    assert only(answer).current_leader.leader_id == 100
    assert [(one.node_id, one.port) for one in answer.node_endpoints] == [(100, 9092)]


def test_refused_produce_names_the_leader_of_the_partition__kip951(harness: ClientHarness) -> None:
    data = TopicProduceData("t", partition_data=[PartitionProduceData(1, b"")])
    answer = harness.client_ask(ApiKey.PRODUCE, 12, ProduceRequest(None, -1, 100, [data]))
    (one,) = answer.responses[0].partition_responses
    assert (one.error_code, one.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(1, 9093)]


def test_produce_to_an_unknown_topic_or_partition_is_refused(harness: ClientHarness) -> None:
    def error(version: int, **topic: object) -> int:
        data = TopicProduceData(partition_data=[PartitionProduceData(7, b"")], **topic)  # type: ignore[arg-type]
        answer = harness.client_ask(ApiKey.PRODUCE, version, ProduceRequest(None, -1, 100, [data]))
        return int(answer.responses[0].partition_responses[0].error_code)

    known = harness.node.image.topic_names()["t"]
    assert error(12, name="nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error(12, name="t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it has no partition 7"
    assert error(13, topic_id=known) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error(13, topic_id=b"?" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert error(13, topic_id=METADATA_TOPIC_ID) == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (99, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_epoch_errors_are_returned_if_no_leader_can_be_named(
    harness: ClientHarness, epoch: int, error: ErrorCode
) -> None:
    request = consuming(0, epoch=epoch)
    request.topics[0].topic = METADATA_TOPIC
    assert only(harness.client_ask(ApiKey.FETCH, 11, request)).error_code == error


def test_session_includes_the_metadata_log_only_when_it_has_news(harness: ClientHarness) -> None:
    end_offset = harness.view.high_watermark
    first = harness.client_ask(ApiKey.FETCH, 17, consuming(end_offset, session_epoch=0))
    assert first.session_id and len(first.responses) == 1
    fetch = consuming(0, session_id=first.session_id, session_epoch=1, partitions=False)
    assert harness.client_ask(ApiKey.FETCH, 17, fetch).responses == []
    harness.create("news")
    fetch.session_epoch = 2
    assert only(harness.client_ask(ApiKey.FETCH, 17, fetch)).records


def list_offsets(
    harness: ClientHarness, version: int, *partitions: ListOffsetsPartition
) -> list[ListOffsetsPartitionResponse]:
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(METADATA_TOPIC, list(partitions))])
    (topic,) = harness.client_ask(ApiKey.LIST_OFFSETS, version, request).topics
    found: list[ListOffsetsPartitionResponse] = topic.partitions
    return found


def offsets(harness: ClientHarness, *times_ms: int, version: int = 11) -> list[tuple[int, int, int]]:
    found = [
        one for ms in times_ms for one in list_offsets(harness, version, ListOffsetsPartition(0, -1, ms))
    ]
    assert not any(one.error_code for one in found)
    return [(one.offset, one.timestamp, one.leader_epoch) for one in found]


def test_offsets_are_listed_by_name_and_by_time(harness: ClientHarness) -> None:
    end_offset = harness.view.high_watermark
    harness.advance(60_000)
    later_ms = harness.clock.ms
    harness.create("later")
    high_watermark = harness.view.high_watermark
    found = offsets(harness, -2, -1, later_ms, -3, -5, later_ms + 10**9)
    earliest, latest, at_time, newest, tiered, never = found
    assert earliest[0] == 0 and latest == (high_watermark, -1, harness.node.core.epoch)
    assert at_time[0] >= end_offset and at_time[1] >= later_ms
    assert newest[1] >= later_ms
    assert tiered[0] == never[0] == -1


@pytest.mark.parametrize("version", range(1, 12))
def test_offsets_are_listed_in_every_version(harness: ClientHarness, version: int) -> None:
    epoch = harness.node.core.epoch if version >= 4 else -1
    _earliest, latest, _at_time = offsets(harness, -2, -1, 1, version=version)
    assert latest == (harness.view.high_watermark, -1, epoch)


@pytest.mark.parametrize(
    ("timestamp", "first_version"), [(-2, 1), (-1, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)]
)
def test_a_kind_of_offset_is_listed_from_its_version_on(
    harness: ClientHarness, timestamp: int, first_version: int
) -> None:
    for version in range(1, 12):
        (found,) = list_offsets(harness, version, ListOffsetsPartition(0, -1, timestamp))
        expected = ErrorCode.UNSUPPORTED_VERSION if version < first_version else 0
        assert (version, found.error_code) == (version, expected)


def test_a_partition_that_a_request_names_repeatedly_is_refused_once(harness: ClientHarness) -> None:
    repeated, other = ListOffsetsPartition(0, -1, 1), ListOffsetsPartition(7, -1, 1)
    found = list_offsets(harness, 11, repeated, other, *[repeated] * 10_000)
    assert [(one.partition_index, one.error_code) for one in found] == [
        (0, ErrorCode.INVALID_REQUEST),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("version", range(10, 13))
def test_metadata_request_with_neither_name_nor_id_is_refused(harness: ClientHarness, version: int) -> None:
    request = MetadataRequest([MetadataRequestTopic(METADATA_TOPIC_ID if version < 12 else bytes(16), None)])
    (topic,) = harness.client_ask(ApiKey.METADATA, version, request).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, "")
    assert not harness.closed


def test_end_offsets_of_leader_epochs_are_those_of_the_log__kip320(harness: ClientHarness) -> None:
    epoch = harness.node.core.epoch
    partitions = [OffsetForLeaderPartition(0, -1, one) for one in (epoch, epoch + 5)]
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(METADATA_TOPIC, partitions)])
    (topic,) = harness.client_ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics
    assert [(one.leader_epoch, one.end_offset) for one in topic.partitions] == [
        (epoch, harness.view.high_watermark),
        (-1, -1),
    ]


def test_changes_of_the_metadata_topic_are_refused__kip630(harness: ClientHarness) -> None:
    refused = ErrorCode.POLICY_VIOLATION
    ask = harness.client_ask
    deletion = DeleteTopicsRequest([DeleteTopicState(METADATA_TOPIC)])
    assert ask(ApiKey.DELETE_TOPICS, 6, deletion).responses[0].error_code == refused
    named = ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=(METADATA_TOPIC,)))
    assert [(one.name, one.error_code) for one in named.responses] == [(METADATA_TOPIC, refused)]
    growth = CreatePartitionsRequest([CreatePartitionsTopic(METADATA_TOPIC, 2, None)])
    assert ask(ApiKey.CREATE_PARTITIONS, 3, growth).results[0].error_code == refused
    change = AlterConfigsRequest([AlterConfigsResource(2, METADATA_TOPIC, [])])
    assert ask(ApiKey.ALTER_CONFIGS, 2, change).responses[0].error_code == refused
    records = DeleteRecordsRequest([DeleteRecordsTopic(METADATA_TOPIC, [DeleteRecordsPartition(0, 5)])])
    shortened = ask(ApiKey.DELETE_RECORDS, 2, records)
    assert shortened.topics[0].partitions[0].error_code == refused
    data = TopicProduceData(METADATA_TOPIC, partition_data=[PartitionProduceData(0, b"")])
    produced = ask(ApiKey.PRODUCE, 12, ProduceRequest(None, -1, 100, [data]))
    assert produced.responses[0].partition_responses[0].error_code == refused
    harness.client_send(ApiKey.PRODUCE, 12, ProduceRequest(None, 0, 100, [data]), connection_id=1002)
    assert harness.closed[1002] == "this node takes no records"


def test_metadata_topic_is_described_with_cleanup_policy_snapshot__kip630(harness: ClientHarness) -> None:
    resources = [
        DescribeConfigsResource(2, METADATA_TOPIC, None),
        DescribeConfigsResource(2, "t", ("cleanup.policy",)),
    ]
    answer = harness.client_ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))
    configs = [[(one.name, one.value) for one in result.configs] for result in answer.results]
    of_log = [("cleanup.policy", "snapshot"), ("min.insync.replicas", "1")]
    assert configs == [of_log, [("cleanup.policy", "delete")]]


def test_topics_are_described_page_by_page(harness: ClientHarness) -> None:
    harness.create("u", partitions=3)
    names = [TopicRequest(name) for name in (METADATA_TOPIC, "t", "u", "v")]
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(names, 2, cursor)
        answer = harness.client_ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        seen += [(topic.name, p.partition_index) for topic in answer.topics for p in topic.partitions]
        if answer.next_cursor is None:
            break
        cursor = Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert seen == [(METADATA_TOPIC, 0), ("t", 0), ("t", 1), ("u", 0), ("u", 1), ("u", 2)]
    assert answer.topics[-1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_cluster_is_described_by_its_brokers(harness: ClientHarness) -> None:
    answer = harness.client_ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest())
    assert [(one.broker_id, one.port) for one in answer.brokers] == [(1, 9093)]
    assert answer.controller_id == 1
    wrong = harness.client_ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_writes_of_an_admin_client_are_passed_to_this_nodes_controller(harness: ClientHarness) -> None:
    request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
    answer = harness.client_ask(ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code == 0
    assert "by-client" in harness.node.image.topic_names()


def test_node_that_is_elected_while_a_write_waits_decides_it_itself(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as leaderless:
        leaderless.setattr(NodeView, "leader_id", None)
        leaderless.setattr(NodeView, "is_active", False)
        leaderless.setattr(NodeView, "controller_destination", lambda _view: None)
        request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
        place = harness.client_send(ApiKey.CREATE_TOPICS, 7, request)
        harness.client_advance(RETRY_MS)
        assert place not in harness.answers
    harness.client_advance(RETRY_MS)
    assert harness.answer(place).topics[0].error_code == 0
    assert not len(harness.clients.passing_on)


def test_fault_of_this_nodes_controller_is_answered_also_after_a_wait(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(*_arguments: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(type(harness.node.decisions), "decide", decide)
    harness.may_fail = True
    with monkeypatch.context() as elected:
        elected.setattr(harness.node.decision_rights, "active_epoch", None)
        request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
        place = harness.client_send(ApiKey.CREATE_TOPICS, 7, request)
    harness.client_advance(RETRY_MS)
    assert harness.answer(place).topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_leader_that_is_not_active_yet_decides_a_write_once_it_is(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elected:
        elected.setattr(harness.node.decision_rights, "active_epoch", None)
        request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
        place = harness.client_send(ApiKey.CREATE_TOPICS, 7, request)
        harness.client_advance(RETRY_MS)
        assert place not in harness.answers and not harness.sent_to_nodes
    harness.client_advance(RETRY_MS)
    assert harness.answer(place).topics[0].error_code == 0


def test_brokers_are_asked_for_coordinators_one_after_another(harness: ClientHarness) -> None:
    harness.unfenced(2)
    place = harness.client_send(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest("group"))
    (first,) = harness.sent_to_nodes
    assert first.destination.node_id == 1 and first.message.coordinator_keys == ("group",)
    harness.client_step(Answered(first.request_id, None))
    harness.client_advance(RETRY_MS)
    second = harness.sent_to_nodes[-1]
    assert second.destination.node_id == 2
    found = FindCoordinatorResponse(coordinators=[Coordinator("group", 2, "127.0.0.1", 9094)])
    harness.client_step(Answered(second.request_id, found))
    assert (harness.answer(place).node_id, harness.answer(place).port) == (2, 9094)
    assert harness.answer(place).error_message == "NONE"
    assert not len(harness.clients.passing_on)


def test_without_an_answer_of_any_broker_the_client_gets_a_retriable_error(harness: ClientHarness) -> None:
    place = harness.client_send(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=("g",)))
    harness.client_step(Answered(harness.sent_to_nodes[0].request_id, None))
    harness.client_advance(RETRY_MS)
    assert harness.answer(place).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def ask_for_a_coordinator(harness: ClientHarness) -> tuple[int, int]:
    return harness.client_send(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=("g",)))


def coordinator(harness: ClientHarness, ask: int, node_id: int) -> None:
    """Answer the Ask at that place among all, as a broker."""
    found = FindCoordinatorResponse(coordinators=[Coordinator("g", node_id, "127.0.0.1", 9094)])
    harness.client_step(Answered(harness.sent_to_nodes[ask].request_id, found))


def test_broker_that_is_slow_does_not_hold_up_the_client(harness: ClientHarness) -> None:
    harness.unfenced(2)
    place = ask_for_a_coordinator(harness)
    harness.client_advance(BROKER_WAIT_MS)
    assert [one.destination.node_id for one in harness.sent_to_nodes] == [1, 2]
    coordinator(harness, 1, 2)
    assert harness.answer(place).coordinators[0].node_id == 2
    coordinator(harness, 0, 1)  # late: the client has its answer
    harness.client_advance(BROKER_WAIT_MS)
    assert len(harness.sent_to_nodes) == 2 and not len(harness.clients.passing_on)
    ask_for_a_coordinator(harness)
    assert harness.sent_to_nodes[-1].destination.node_id == 2, "the broker that answered last is asked first"


def test_slow_brokers_answer_counts_when_no_other_broker_has_one(harness: ClientHarness) -> None:
    harness.unfenced(2)
    place = ask_for_a_coordinator(harness)
    harness.client_advance(BROKER_WAIT_MS)
    harness.client_step(Answered(harness.sent_to_nodes[1].request_id, None))
    harness.client_advance(BROKER_WAIT_MS)
    assert place not in harness.answers
    coordinator(harness, 0, 1)
    assert harness.answer(place).coordinators[0].node_id == 1


def test_late_answer_of_a_broker_is_ignored(harness: ClientHarness) -> None:
    disconnected = ask_for_a_coordinator(harness)
    harness.client_closed()
    coordinator(harness, 0, 1)
    assert disconnected not in harness.answers
    given_up = ask_for_a_coordinator(harness)
    harness.client_advance(harness.clients.settings.request_timeout_ms)
    assert harness.answer(given_up).coordinators[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    coordinator(harness, 1, 1)
    assert not len(harness.clients.passing_on)


def test_unusable_answer_of_a_broker_fails_one_call_only(harness: ClientHarness) -> None:
    harness.may_fail = True
    place = harness.client_send(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest("g"))
    harness.client_step(Answered(harness.sent_to_nodes[0].request_id, FindCoordinatorResponse()))
    assert harness.answer(place).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not len(harness.clients.passing_on)


def test_api_versions_list_what_the_listener_serves(harness: ClientHarness) -> None:
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert versions[ApiKey.METADATA] == (0, 13) and versions[ApiKey.FETCH] == (4, 18)
    assert ApiKey.VOTE not in versions and ApiKey.ENVELOPE not in versions
    assert answer.finalized_features


@pytest.mark.parametrize(("unstable", "newest"), [(False, 5), (True, 6)])
def test_unstable_versions_are_listed_if_they_are_enabled(
    harness: ClientHarness, unstable: bool, newest: int
) -> None:
    settings = ClientSettings({CLIENT: Endpoint(CLIENT, "127.0.0.1", 9092)}, unstable_versions=unstable)
    harness.clients = MetadataTopicNode(harness.view, settings, client_registry, lambda: 1)
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    (listed,) = (one for one in answer.api_keys if one.api_key == ApiKey.INIT_PRODUCER_ID)
    assert listed.max_version == newest


def test_without_sasl_logins_are_listed_and_refused(harness: ClientHarness) -> None:
    listed = {
        one.api_key
        for one in harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("t", "1")).api_keys
    }
    assert {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} <= listed
    for key, request in (
        (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN")),
        (ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(b"x")),
    ):
        answer = harness.client_ask(key, 1, request)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert key == ApiKey.SASL_HANDSHAKE or answer.error_message


def test_bytes_behind_a_request_are_ignored_as_kafka_does(harness: ClientHarness) -> None:
    frame = b"".join(encode_request(ApiKey.METADATA, 13, 77, "test", MetadataRequest([])))[4:]
    place = harness.client_frame(frame + b"\0\0\0", ApiKey.METADATA, 13)
    assert [one.node_id for one in harness.answer(place).brokers] == [1]
