"""ListOffsets (2), v1-11: offsets of partitions that this broker leads, by a name for them or by time.

Authorization: DESCRIBE on the topic, of followers too. Sent by: consumers, followers and admin
clients. Answered at once, each topic once, none without partitions; a time is looked up in the log by a
thread. Errors, per partition: TOPIC_AUTHORIZATION_FAILED; INVALID_REQUEST, once, for one that is named
repeatedly; UNSUPPORTED_VERSION for a kind of offset that the version does not have;
UNKNOWN_TOPIC_OR_PARTITION, and those of `kraftd.partition.reading.list_offset`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers import metadata_offsets
from kraftd.answers.metadata_offsets import MAX_TIMESTAMP
from kraftd.answers.unread_denials import unread as unread
from kraftd.broker_node.effects import LogLookup
from kraftd.broker_node.events import Found
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraftd.named_tuple import NamedTuple
from kraftd.partition.reading import Isolation, ListedOffset, TimestampLookup, is_unsupported, list_offset
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.messages.list_offsets_request import ListOffsetsPartition
    from kraftd.requests.call import Call

CONSUMER, DEBUGGER = -1, -2  # replica ids that are no brokers'
READ_COMMITTED = 1
PARTITION_US = 10


class Asked(NamedTuple):
    """A partition whose log is asked."""

    answer: ListOffsetsPartitionResponse
    lookup: TimestampLookup
    key: tuple[str, int]


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    request, response = call.message, ListOffsetsResponse()
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, AclResourceType.TOPIC)
    asked: list[Asked] = []
    pace = Pace()
    counts: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for one in topic.partitions:
            counts[topic.name, one.partition_index] += 1
            if pace.spent(ROW_US):
                yield
    by_name: dict[str, ListOffsetsTopicResponse] = {}  # of the topics that the client may describe
    for topic in request.topics:
        allowed = describing.allows(topic.name)
        answers = ListOffsetsTopicResponse(topic.name)
        if allowed:
            answers = by_name.setdefault(topic.name, answers)
        is_new = not answers.partitions
        for one in topic.partitions:
            answer = ListOffsetsPartitionResponse(one.partition_index)
            key = topic.name, one.partition_index
            count = counts.pop(key, 0) if allowed else 1
            if not count:
                continue  # it is answered where it is named first
            if not allowed:
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif count > 1:
                answer.error_code = ErrorCode.INVALID_REQUEST
            else:
                found = _offset(node, call, topic.name, one)
                if isinstance(found, TimestampLookup):
                    asked.append(Asked(answer, found, key))
                elif isinstance(found, ListOffsetsPartitionResponse):
                    answer = found
                else:
                    _fill(answer, found)
            answers.partitions.append(answer)
            if pace.spent(PARTITION_US):
                yield
        if is_new and (answers.partitions or not allowed):
            response.topics.append(answers)
        if pace.spent(describing.cost_us):
            yield
    describing.end()
    if asked:
        yield from _ask_logs(node, call, response, asked, pace)
    else:
        yield from node.boundary.answer_in_slices(call, response)


def _ask_logs(
    node: BrokerNode, call: Call, response: ListOffsetsResponse, asked: list[Asked], pace: Pace
) -> Slices[None]:
    lookups = []
    for _, lookup, key in asked:
        end = lookup.last_fetchable_offset
        lookups.append(LogLookup(*key, lookup.target_ms, lookup.wants_maximum, end))
        if pace.spent(ROW_US):
            yield

    def finish(found: tuple[Found | ErrorCode | None, ...]) -> None:
        node.boundary.large.begin(call, _finish(node, call, response, asked, found))

    node.log_questions.find_offsets(call, tuple(lookups), finish)


def _finish(
    node: BrokerNode,
    call: Call,
    response: ListOffsetsResponse,
    asked: list[Asked],
    found: tuple[Found | ErrorCode | None, ...],
) -> Slices[None]:
    call.settled = False  # so that the guard answers for a fault
    pace = Pace()
    for (answer, lookup, _), one in zip(asked, found, strict=True):
        _fill(answer, one if isinstance(one, ErrorCode) else lookup.answer(one))
        if pace.spent(ROW_US):
            yield
    yield from node.boundary.answer_in_slices(call, response)


def _offset(
    node: BrokerNode, call: Call, topic: str, requested: ListOffsetsPartition
) -> ListedOffset | TimestampLookup | ErrorCode | ListOffsetsPartitionResponse:
    if topic == METADATA_TOPIC:
        return _offset_of_metadata(node, call, topic, requested)
    hosted = node.replicas.get(topic, requested.partition_index)
    if hosted is None or hosted.partition is None:
        if is_unsupported(requested.timestamp, call.version):
            return ErrorCode.UNSUPPORTED_VERSION
        return node.missing_partition(topic, requested.partition_index)
    replica_id = call.message.replica_id
    isolation = Isolation.HIGH_WATERMARK
    if replica_id != CONSUMER:
        isolation = Isolation.LOG_END
    elif call.version >= 2 and call.message.isolation_level == READ_COMMITTED:
        isolation = Isolation.LAST_STABLE
    return list_offset(
        hosted.partition,
        requested.timestamp,
        call.version,
        isolation=isolation,
        current_leader_epoch=requested.current_leader_epoch,
        only_leader=replica_id != DEBUGGER,
    )


def _offset_of_metadata(
    node: BrokerNode, call: Call, topic: str, requested: ListOffsetsPartition
) -> TimestampLookup | ListOffsetsPartitionResponse:
    listed = metadata_offsets.list_offset(node.view, topic, requested, True, call.version)
    if listed is not None:
        return listed
    end, wants_maximum = node.view.high_watermark, requested.timestamp == MAX_TIMESTAMP
    return TimestampLookup(requested.timestamp, wants_maximum, 0, end, None, call.version >= 4)


def _fill(answer: ListOffsetsPartitionResponse, found: ListedOffset | ErrorCode) -> None:
    if isinstance(found, ErrorCode):
        answer.error_code = found
    else:
        answer.timestamp, answer.offset, answer.leader_epoch = (
            found.timestamp_ms,
            found.offset,
            found.leader_epoch,
        )
