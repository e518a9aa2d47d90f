"""DescribeTopicPartitions (75), v0: topics by name, page by page, with the ELR of each partition (KIP-966).

Authorization: DESCRIBE on each topic. Sent by: admin clients. Answered from committed metadata. An answer
has at most max.request.partition.size.limit partitions, and ends with a cursor if there are more. Errors,
per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, these last. Of
the request: INVALID_REQUEST for a cursor at a topic that the request does not name, or at a negative
partition.
Differs from a broker: the metadata topic exists.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers import metadata_topic
from kraftd.answers.apis.api_03_metadata import of_call
from kraftd.answers.nodes import broker_listener
from kraftd.answers.operations import allowed_operations, operations_us
from kraftd.answers.topics import INTERNAL_TOPICS, TopicReader, name_error
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kraftd.metadata.state import TopicState
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.messages.describe_topic_partitions_request import TopicRequest
    from kraftd.requests.call import Call

READER_VERSION = 13  # of Metadata: what its partitions report
NAMES_PER_CALLBACK = 5_000  # sorted


def handle(node: AnsweringNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


def describe(node: AnsweringNode, call: Call) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    """The answer, made some partitions per event loop callback. Raises Refusal(INVALID_REQUEST)."""
    request = call.message
    fetches_all = not request.topics
    pace, cursor = Pace(), request.cursor
    first, first_index = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    if first_index < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if fetches_all:
        names = list(node.view.image.topic_names())
    else:
        names = yield from named_once(request.topics, None if cursor is None else first, pace)
    listener = broker_listener(node.settings, call.listener)
    reader = TopicReader(node.view.image, listener, READER_VERSION)
    response, denied = DescribeTopicPartitionsResponse(), []
    left = max(1, min(node.settings.described_partitions, request.response_partition_limit))
    work_us = 0
    topic_us = operations_us(node, AclResourceType.TOPIC)
    operation, type = AclOperation.DESCRIBE, AclResourceType.TOPIC
    describing = Permission(node.boundary, call, operation, type, quietly=fetches_all)
    in_order = yield from in_name_order(names, first)
    for name in in_order:
        if pace.spent(work_us):
            yield
            reader = TopicReader(node.view.image, listener, READER_VERSION)
        allowed = describing.allows(name)
        work_us = 1 + describing.cost_us
        is_full = response.next_cursor is not None
        if not allowed:
            if not fetches_all:
                denied.append(name)
        elif left == 0 and not is_full:
            response.next_cursor = Cursor(name, 0)
        elif not is_full:
            start = first_index if name == first else 0
            shown = describe_topic(node, call, reader, name, range(start, start + left))
            if not shown.error_code or not fetches_all:  # else deleted since the names were taken
                shown.topic_authorized_operations = allowed_operations(
                    node, call, AclResourceType.TOPIC, name
                )
                response.topics.append(shown)
            left -= len(shown.partitions)
            work_us += topic_us + len(shown.partitions)  # about 1 µs each
            if not left and is_there(node, name, start + len(shown.partitions)):
                response.next_cursor = Cursor(name, start + len(shown.partitions))
        if fetches_all and response.next_cursor is not None:
            break
    describing.end()
    for name in denied:
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        )
        if pace.spent(1):
            yield
    return response


def named_once(topics: list[TopicRequest], first: str | None, pace: Pace) -> Slices[list[str]]:
    """The names, each once. Raises Refusal(INVALID_REQUEST) if `first` is not among them."""
    names, has_first = [], first is None
    times = yield from count_in_slices(topics, attrgetter("name"), pace)
    for topic in topics:
        if times.take(topic.name):
            names.append(topic.name)
            has_first = has_first or topic.name == first
        if pace.spent(1):
            yield
    if not has_first:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    return names


def describe_topic(
    node: AnsweringNode, call: Call, reader: TopicReader, name: str, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    """Those partitions of a topic, or the error for it."""
    if name == METADATA_TOPIC and node.settings.serves_metadata_topic:
        return of_metadata_topic(node, call)
    image = node.view.image
    topic = image.topic(image.topic_id(name))
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(name_error(name), name)
    return of_topic(reader, topic, indexes.start, min(len(topic.partitions), indexes.stop))


def is_there(node: AnsweringNode, name: str, index: int) -> bool:
    """Return whether a topic has a partition of that index."""
    image = node.view.image
    return image.partition(image.topic_id(name), index) is not None


def in_name_order(names: list[str], first: str) -> Generator[None, None, Iterator[str]]:
    """The names from `first` on; each callback sorts some thousands."""
    sorted_parts = []
    for begin in range(0, len(names), NAMES_PER_CALLBACK):
        if begin:
            yield
        part = names[begin : begin + NAMES_PER_CALLBACK]
        sorted_parts.append(sorted(name for name in part if name >= first))
    return merge(*sorted_parts)


def of_topic(
    reader: TopicReader, topic: TopicState, start: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    """The partitions of a topic from `start` to before `end`."""
    partitions = []
    for index in range(start, end):
        state = topic.partitions.get(index)
        if state is not None:
            partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    0,
                    index,
                    reader.leader(state),
                    state.leader_epoch,
                    state.replicas,
                    state.isr,
                    state.elr,
                    state.last_known_elr,
                    reader.offline_replicas(state),
                )
            )
    is_internal = topic.name in INTERNAL_TOPICS
    return DescribeTopicPartitionsResponseTopic(0, topic.name, topic.id, is_internal, partitions)


def of_metadata_topic(node: AnsweringNode, call: Call) -> DescribeTopicPartitionsResponseTopic:
    shown = metadata_topic.describe(of_call(node, call), is_internal=False)
    (one,) = shown.partitions
    partition = DescribeTopicPartitionsResponsePartition(
        one.error_code,
        one.partition_index,
        one.leader_id,
        one.leader_epoch,
        one.replica_nodes,
        one.isr_nodes,
        (),  # not null: Java's client reads it as a list
        (),
    )
    return DescribeTopicPartitionsResponseTopic(0, shown.name, shown.topic_id, shown.is_internal, [partition])
