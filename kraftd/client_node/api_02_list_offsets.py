"""ListOffsets (2), v1-11: offsets of the metadata log, by a name for them or by time.

Authorization: DESCRIBE on the topic. Sent by: consumers and admin clients. Answered at once; a time is looked
up in the log's time index. The latest offset is the high watermark. Errors, per partition:
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
NOT_LEADER_OR_FOLLOWER for the partitions of brokers. Nothing is tiered: those offsets are -1.
Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.client_node.effects import LookUpTimes
from kraftd.client_node.metadata_topic import epoch_error, partition_error
from kraftd.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.messages.list_offsets_request import ListOffsetsPartition
    from kraftd.requests.call import Call

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSION_WITH_EPOCHS = 4


def handle(node: ClientNode, call: Call) -> None:
    if not node.knows_metadata(call):
        return
    times_ms: list[int | None] = []
    timed: list[ListOffsetsPartitionResponse] = []
    response = ListOffsetsResponse()
    for topic in call.message.topics:
        allowed = node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, topic.name)
        answered = []
        for asked in topic.partitions:
            one = answer_one(node, topic.name, asked, allowed)
            if one is None:
                one = ListOffsetsPartitionResponse(asked.partition_index)
                times_ms.append(None if asked.timestamp == MAX_TIMESTAMP else asked.timestamp)
                timed.append(one)
            answered.append(one)
        response.topics.append(ListOffsetsTopicResponse(topic.name, answered))
    if not timed:
        send(node, call, response)
        return

    def answer(found: list[tuple[int, int] | None]) -> None:
        for one, place in zip(timed, found, strict=True):
            if place is not None:
                one.timestamp, one.offset = place
                one.leader_epoch = _epoch(node.view.epoch_of(one.offset))
        send(node, call, response)

    node.look_up(call, answer, LookUpTimes(call, times_ms, node.view.high_watermark))


def send(node: ClientNode, call: Call, response: ListOffsetsResponse) -> None:
    """Answer, without the epochs of the offsets if the version lacks them."""
    if call.version < FIRST_VERSION_WITH_EPOCHS:
        for topic in response.topics:
            for one in topic.partitions:
                one.leader_epoch = -1
    node.boundary.answer(call, response)


def answer_one(
    node: ClientNode, topic: str, asked: ListOffsetsPartition, allowed: bool
) -> ListOffsetsPartitionResponse | None:
    """The offset or the error of one partition; None if the log must be searched."""
    view = node.view
    error = partition_error(view, topic, asked.partition_index)
    if not allowed:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    error = error or epoch_error(view, asked.current_leader_epoch)
    if error:
        return ListOffsetsPartitionResponse(asked.partition_index, error)
    if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = view.log_start_offset
        epoch = _epoch(view.epoch_of(offset))
        return ListOffsetsPartitionResponse(asked.partition_index, 0, -1, offset, epoch)
    if asked.timestamp == LATEST:
        offset = view.high_watermark
        return ListOffsetsPartitionResponse(
            asked.partition_index, 0, -1, offset, _epoch(view.epoch_of(offset - 1))
        )
    if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsPartitionResponse(asked.partition_index)
    if asked.timestamp < EARLIEST_PENDING_UPLOAD:
        return ListOffsetsPartitionResponse(asked.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    assert topic == METADATA_TOPIC
    return None


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch
