"""ListOffsets (2), v1-11: offsets of the metadata log, by a name for them or by time.

Authorization: DESCRIBE on the topic. Sent by: consumers and admin clients. Answered at once; a time is looked
up in the log's time index. The latest offset is the high watermark. Nothing is tiered: those offsets are -1.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED; INVALID_REQUEST, once, for one that is named repeatedly;
UNSUPPORTED_VERSION for a kind of offset that the version does not have. UNKNOWN_TOPIC_OR_PARTITION,
NOT_LEADER_OR_FOLLOWER for the partitions of brokers, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.metadata_offsets import MAX_TIMESTAMP, epoch_or_none, list_offset
from kraftd.answers.unread_denials import unread as unread
from kraftd.ground.occurrences import Occurrences
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraftd.metadata_topic_node.effects import LookUpTimes
from kraftd.requests.permission import Permission
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.messages.list_offsets_request import ListOffsetsTopic
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

FIRST_VERSION_WITH_EPOCHS = 4

TOPIC_US, PARTITION_US = 3, 2  # microseconds, for the pace

PartitionName = tuple[str, int]


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    times_ms: list[int | None] = []
    timed: list[ListOffsetsPartitionResponse] = []
    response, pace = ListOffsetsResponse(), Pace()
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, AclResourceType.TOPIC)
    named = yield from occurrences(call.message.topics, pace)
    for topic in call.message.topics:
        allowed = describing.allows(topic.name)
        if pace.spent(TOPIC_US + describing.cost_us):
            yield
        answered = []
        for requested in topic.partitions:
            if pace.spent(PARTITION_US):
                yield
            count = named.take((topic.name, requested.partition_index)) if allowed else 1
            if count > 1:
                answered.append(
                    ListOffsetsPartitionResponse(requested.partition_index, ErrorCode.INVALID_REQUEST)
                )
            if count != 1:
                continue
            one = list_offset(node.view, topic.name, requested, allowed, call.version)
            if one is None:
                one = ListOffsetsPartitionResponse(requested.partition_index)
                times_ms.append(None if requested.timestamp == MAX_TIMESTAMP else requested.timestamp)
                timed.append(one)
            elif call.version < FIRST_VERSION_WITH_EPOCHS:
                one.leader_epoch = -1
            answered.append(one)
        if answered:
            response.topics.append(ListOffsetsTopicResponse(topic.name, answered))
    describing.end()
    yield from named.free(pace)
    if not timed:
        yield from node.boundary.answer_in_slices(call, response)
        return

    def answer(found: list[tuple[int, int] | None]) -> None:
        for one, place in zip(timed, found, strict=True):
            if place is not None:
                one.timestamp, one.offset = place
                if call.version >= FIRST_VERSION_WITH_EPOCHS:
                    one.leader_epoch = epoch_or_none(node.view.epoch_of(one.offset))
        node.boundary.answer(call, response)

    node.look_up(call, answer, LookUpTimes(call, times_ms, node.view.high_watermark))


def occurrences(topics: list[ListOffsetsTopic], pace: Pace) -> Slices[Occurrences[PartitionName]]:
    """How often a request names each partition."""
    total = 0
    for topic in topics:
        total += len(topic.partitions)
        if pace.spent(1):
            yield
    named: Occurrences[PartitionName] = Occurrences.for_about(total)
    for topic in topics:
        if pace.spent(1):
            yield
        for one in topic.partitions:
            named.add((topic.name, one.partition_index))
            if pace.spent(1):
                yield
    return named
