"""A writer reads its own write at the node that forwarded it to the active controller."""

from __future__ import annotations

import pytest

from kraftd.answers.effects import Answered, SendToNode
from kraftd.ground.destination import Destination
from kraftd.host.cluster_view import NodeView
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData, TopicData
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response
from tests.metadata_topic_node.clients import ClientHarness

WAIT_MS = 1_000


@pytest.fixture
def follower(controller: ClientHarness, monkeypatch: pytest.MonkeyPatch) -> ClientHarness:
    """A node that forwards writes to controller 2."""
    monkeypatch.setattr(NodeView, "is_active", False)
    monkeypatch.setattr(NodeView, "leader_id", 2)
    monkeypatch.setattr(NodeView, "controller_destination", lambda _: Destination(2, "127.0.0.1", 9093))
    return controller


def carried(throttle_ms: int = 0) -> EnvelopeResponse:
    """The controller's answer to the write, as it arrives here."""
    response = CreateTopicsResponse(throttle_ms, [CreatableTopicResult("by-client")])
    return EnvelopeResponse(b"".join(encode_response(ApiKey.CREATE_TOPICS, 7, 77, response))[4:])


def described(high_watermark: int, error: int = 0) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[TopicData(METADATA_TOPIC, [PartitionData(0, error, high_watermark=high_watermark)])]
    )


def forwarded(follower: ClientHarness, throttle_ms: int = 0) -> tuple[tuple[int, int], SendToNode]:
    """A write that the controller has answered, and the question that follows."""
    request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], WAIT_MS)
    place = follower.client_send(ApiKey.CREATE_TOPICS, 7, request)
    follower.client_step(Answered(follower.sent_to_nodes[-1].request_id, carried(throttle_ms)))
    return place, follower.sent_to_nodes[-1]


def test_an_answer_waits_until_the_image_has_the_write(follower: ClientHarness) -> None:
    place, question = forwarded(follower)
    assert isinstance(question.message, DescribeQuorumRequest) and question.destination.node_id == 2
    behind = follower.view.applied_end_offset + 1
    follower.client_step(Answered(question.request_id, described(behind)))
    assert place not in follower.answers
    follower.create("from-the-log")  # records come that the leader has committed
    assert follower.answer(place).topics[0].error_code == 0
    assert follower.clients.held.deadline_ms() is None


def test_an_answer_is_sent_at_once_if_the_image_has_the_write_already(follower: ClientHarness) -> None:
    place, question = forwarded(follower)
    follower.client_step(Answered(question.request_id, described(follower.view.applied_end_offset)))
    assert follower.answer(place).topics[0].name == "by-client"


@pytest.mark.parametrize(
    "message", [None, described(1 << 40, ErrorCode.NOT_LEADER_OR_FOLLOWER), DescribeQuorumResponse(31)]
)
def test_a_write_is_answered_if_the_leader_reports_no_high_watermark(
    follower: ClientHarness, message: DescribeQuorumResponse | None
) -> None:
    place, question = forwarded(follower)
    follower.client_step(Answered(question.request_id, message))
    assert follower.answer(place).topics[0].error_code == 0


def test_a_write_is_answered_when_its_time_is_over(follower: ClientHarness) -> None:
    place, question = forwarded(follower)
    follower.client_step(Answered(question.request_id, described(1 << 40)))
    follower.client_advance(WAIT_MS - 1)
    assert place not in follower.answers
    follower.client_advance(1)
    assert follower.answer(place).topics[0].error_code == 0


def test_a_write_is_answered_if_the_leader_does_not_answer(follower: ClientHarness) -> None:
    place, _ = forwarded(follower)
    follower.client_advance(follower.clients.settings.request_timeout_ms)
    assert follower.answer(place).topics[0].error_code == 0


@pytest.mark.parametrize("throttle_ms", [0, 1_500])
def test_a_client_that_the_controller_throttles_is_muted_here__kip599(
    follower: ClientHarness, throttle_ms: int
) -> None:
    place, question = forwarded(follower, throttle_ms)
    follower.client_step(Answered(question.request_id, None))
    answer = follower.answer(place)
    assert (answer.throttle_time_ms, answer.topics[0].name) == (throttle_ms, "by-client")
    assert follower.muted_ms == ({1000: throttle_ms} if throttle_ms else {})
