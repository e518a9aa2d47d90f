"""DescribeTopicPartitions (75), v0: topics by name, page by page, with the ELR of each partition (KIP-966).

Authorization: DESCRIBE on each topic. Sent by: admin clients. Answered from committed metadata; at most 2000
partitions an answer, which ends with a cursor if there are more. Errors, per topic:
UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED.
Differs from a broker: the metadata topic exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclResourceType
from kraftd.client_node import metadata_topic
from kraftd.client_node.api_03_metadata import may_describe, may_see, of_call
from kraftd.client_node.nodes import broker_listener
from kraftd.client_node.operations import allowed_operations
from kraftd.client_node.topics import INTERNAL_TOPICS, TopicReader, name_error
from kraftd.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kraftd.metadata.state import TopicState
from kraftd.types import METADATA_TOPIC, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.requests.call import Call

MAX_PARTITIONS = 2_000  # Kafka's max.request.partition.size.limit


def handle(node: ClientNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_committed(call, describe(node, call))


def describe(node: ClientNode, call: Call) -> DescribeTopicPartitionsResponse:
    request, image = call.message, node.view.image
    fetches_all = not request.topics
    names = set(image.topic_names()) if fetches_all else {one.name for one in request.topics}
    first, first_index = "", 0
    if request.cursor is not None:
        first, first_index = request.cursor.topic_name, request.cursor.partition_index
        if not fetches_all and first not in names:
            names.add(first)
    reader = TopicReader(image, broker_listener(node.settings, call.listener), 13)
    response = DescribeTopicPartitionsResponse()
    left = max(1, min(MAX_PARTITIONS, request.response_partition_limit))
    for name in sorted(one for one in names if one >= first):
        if not (may_see if fetches_all else may_describe)(node, call, name):
            if not fetches_all:
                denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                response.topics.append(DescribeTopicPartitionsResponseTopic(denied, name))
            continue
        if left == 0:
            response.next_cursor = Cursor(name, 0)
            break
        topic = image.topic(image.topic_names().get(name, ZERO_UUID))
        start = first_index if name == first else 0
        if name == METADATA_TOPIC:
            response.topics.append(of_metadata_topic(node, call))
            left -= 1
        elif topic is None:
            response.topics.append(DescribeTopicPartitionsResponseTopic(name_error(name), name))
        else:
            end = min(len(topic.partitions), start + left)
            response.topics.append(of_topic(reader, topic, start, end))
            left -= max(0, end - start)
            if end < len(topic.partitions):
                response.next_cursor = Cursor(name, end)
                break
    for shown in response.topics:
        if not shown.error_code and shown.name is not None:
            shown.topic_authorized_operations = allowed_operations(
                node, call, AclResourceType.TOPIC, shown.name
            )
    return response


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


def of_metadata_topic(node: ClientNode, call: Call) -> DescribeTopicPartitionsResponseTopic:
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
