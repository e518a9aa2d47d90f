"""What a ConsumerGroupHeartbeat must be like, whatever its group is like."""

from __future__ import annotations

from collections.abc import Collection

from kraftd.ground.java_hashes import hash_map_order
from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode

MEMBER_ID_VERSION = 1  # from which on members make their ids (KIP-1082)
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # what Java's trim takes away


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raise Refusal if the request is not valid."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVING_EPOCH:
        _require(not is_blank(request.member_id), "MemberId can't be empty.")
    _require(not is_blank(request.group_id), "GroupId can't be empty.")
    _require(not is_blank(request.instance_id), "InstanceId can't be empty.")
    _require(not is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == STATIC_LEAVING_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(epoch > STATIC_LEAVING_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(hash_map_order(assignors))}.",
        )


def is_blank(text: str | None) -> bool:
    """Return whether a text that is given has nothing but blanks and control characters, as Java sees it."""
    return text is not None and not text.strip(_BLANKS)


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
    _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
    has_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    _require(
        has_subscription,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)
