"""What a heartbeat must be like: the refusals, in Kafka's words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.validation import check_heartbeat, is_blank
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import heartbeat, joining

NO_MEMBER = "MemberId can't be empty."
NO_SUBSCRIPTION = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
ASSIGNORS = ("uniform", "range")


def refusal(request: ConsumerGroupHeartbeatRequest, version: int = 1) -> tuple[ErrorCode, str] | None:
    try:
        check_heartbeat(request, version, ASSIGNORS)
    except Refusal as refused:
        assert refused.message is not None
        return refused.code, refused.message
    return None


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (joining(""), NO_MEMBER),
        (joining(" \t"), NO_MEMBER),
        (heartbeat("", 1), NO_MEMBER),
        (heartbeat("", -1), NO_MEMBER),
        (joining("m", group=" "), "GroupId can't be empty."),
        (joining("m", instance=""), "InstanceId can't be empty."),
        (replace(joining("m"), rack_id=" "), "RackId can't be empty."),
        (replace(heartbeat("m", 1), rack_id=""), "RackId can't be empty."),
        (heartbeat("m", 0, topics=(), owned={}), "RebalanceTimeoutMs must be provided in first request."),
        (
            heartbeat("m", 0, topics=(), rebalance_ms=1),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            heartbeat("m", 0, topics=(), owned={bytes(16): [0]}, rebalance_ms=1),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (heartbeat("m", 0, owned={}, rebalance_ms=1), NO_SUBSCRIPTION),
        (heartbeat("m", -2), "InstanceId can't be null."),
        (heartbeat("m", -3), "MemberEpoch is invalid."),
        (joining("m", topics=()), None),
        (joining("m", topics=None, regex=""), None),
        (replace(joining("m", instance="i"), rack_id="r"), None),
        (heartbeat("m", -2, instance="i"), None),
        (heartbeat("m", -1), None),
        (heartbeat("m", 1), None),
        (joining("m", assignor="range"), None),
    ],
)
def test_a_heartbeat_that_is_not_valid_is_refused_in_kafkas_words(
    request_: ConsumerGroupHeartbeatRequest, message: str | None
) -> None:
    assert refusal(request_) == (message and (ErrorCode.INVALID_REQUEST, message))


def test_an_assignor_that_is_not_there_is_refused_with_those_that_are() -> None:
    text = "ServerAssignor best is not supported. Supported assignors: uniform, range."
    assert refusal(joining("m", assignor="best")) == (ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    assert refusal(heartbeat("m", 1, assignor="")) is not None


def test_before_version_1_a_member_that_joins_or_waits_needs_no_id__kip1082() -> None:
    ids = {epoch: refusal(heartbeat("", epoch, instance="i"), 0) for epoch in (1, -1, -2)}
    refused = ErrorCode.INVALID_REQUEST, NO_MEMBER
    assert ids == {1: refused, -1: refused, -2: None}
    assert refusal(joining(""), 0) is None


def test_blank_is_what_javas_trim_leaves_nothing_of() -> None:
    texts: list[str | None] = ["", " ", "\0\t\r\n\x1f ", None, "\x7f", "\u2003", " a "]
    assert [is_blank(text) for text in texts] == [True] * 3 + [False] * 4
