"""Fetches of the metadata log past its end, by replicas, or with epochs that never were: as at a broker."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.answers.effects import Answered
from kraftd.ground.destination import Destination
from kraftd.host.cluster_view import NodeView
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftd.messages.fetch_request import ReplicaState as FetchingReplica
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.metadata_topic_node.node import LEADER_WAIT_MS
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness, consuming

LEADER = 2
FAR = 1_000_000


@pytest.fixture
def observer(controller: ClientHarness, monkeypatch: pytest.MonkeyPatch) -> ClientHarness:
    """A node that Metadata names as the leader, although controller 2 leads: that one serves no clients."""
    monkeypatch.setattr(NodeView, "is_active", False)
    monkeypatch.setattr(NodeView, "leader_id", LEADER)
    monkeypatch.setattr(NodeView, "controller_destination", lambda _: Destination(LEADER, "127.0.0.1", 9093))
    return controller


def fetch(node: ClientHarness, offset: int, max_wait_ms: int = 500, **changes: Any) -> tuple[int, int]:
    request = consuming(offset, max_wait_ms=max_wait_ms)
    for name, value in changes.items():
        setattr(request.topics[0].partitions[0] if name != "replica_state" else request, name, value)
    return node.client_send(ApiKey.FETCH, 17, request)


def error_of(node: ClientHarness, place: tuple[int, int]) -> int:
    return int(node.answer(place).responses[0].partitions[0].error_code)


def described(node: ClientHarness, log_end_offset: int, epoch: int | None = None) -> DescribeQuorumResponse:
    epoch = node.view.epoch if epoch is None else epoch
    ends = [ReplicaState(LEADER, log_end_offset=log_end_offset)]
    return DescribeQuorumResponse(
        topics=[TopicData(METADATA_TOPIC, [PartitionData(0, 0, None, LEADER, epoch, 5, ends)])]
    )


def test_an_offset_past_the_leaders_log_is_out_of_range_at_an_observer(observer: ClientHarness) -> None:
    place = fetch(observer, FAR)
    question = observer.sent_to_nodes[-1]
    assert isinstance(question.message, DescribeQuorumRequest) and place not in observer.answers
    observer.client_step(Answered(question.request_id, described(observer, FAR - 1)))
    assert error_of(observer, place) == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("answer", ["the leader has it", "none", "of another epoch", "refused"])
def test_a_reader_waits_where_a_replica_may_only_lag(observer: ClientHarness, answer: str) -> None:
    place = fetch(observer, FAR)
    answers = {
        "the leader has it": described(observer, FAR),
        "none": None,
        "of another epoch": described(observer, 5, observer.view.epoch - 1),
        "refused": DescribeQuorumResponse(int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    }
    observer.client_step(Answered(observer.sent_to_nodes[-1].request_id, answers[answer]))
    assert place not in observer.answers
    observer.client_advance(500)
    assert observer.answer(place).responses[0].partitions[0].error_code == 0


def test_a_leader_that_does_not_answer_delays_a_fetch_little(observer: ClientHarness) -> None:
    place = fetch(observer, FAR, 0)
    observer.client_advance(LEADER_WAIT_MS)
    assert error_of(observer, place) == 0


def test_the_leader_is_not_asked_about_what_is_in_the_log(observer: ClientHarness) -> None:
    fetch(observer, observer.view.log_end_offset)
    fetch(observer, 0)
    assert not observer.sent_to_nodes


def test_an_epoch_that_has_not_begun_is_out_of_range(controller: ClientHarness) -> None:
    epoch = controller.view.epoch
    assert error_of(controller, fetch(controller, 1, last_fetched_epoch=epoch)) == 0
    for offset in (1, controller.view.high_watermark):
        place = fetch(controller, offset, last_fetched_epoch=epoch + 1)
        assert error_of(controller, place) == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("offset", [1, FAR])
def test_a_replica_is_refused_at_a_client_listener(controller: ClientHarness, offset: int) -> None:
    place = fetch(controller, offset, replica_state=FetchingReplica(7, -1))
    assert error_of(controller, place) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_no_epoch_has_no_end(controller: ClientHarness) -> None:
    partition = OffsetForLeaderPartition(0, -1, -1)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(METADATA_TOPIC, [partition])])
    answer = controller.client_ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    (end,) = answer.topics[0].partitions
    assert (end.error_code, end.leader_epoch, end.end_offset) == (0, -1, -1)


def test_operations_are_reported_for_names_without_a_topic__kip430(controller: ClientHarness) -> None:
    topics = [MetadataRequestTopic(name=name) for name in ("t", "none", "no name")]
    request = MetadataRequest(topics, include_topic_authorized_operations=True)
    for version in (8, 12):
        answer = controller.client_ask(ApiKey.METADATA, version, request)
        assert {one.topic_authorized_operations for one in answer.topics} == {3576}
