"""DescribeProducers (61), v0: the producers that partitions of this broker remember (KIP-664).

Authorization: READ on the topic. Sent by: admin clients. Answered at once. Errors, per partition:
INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.topics.names import topic_name_problem
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

PRODUCER_US = 3


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    reading = Permission(node.boundary, call, AclOperation.READ, AclResourceType.TOPIC)
    response, pace = DescribeProducersResponse(), Pace()
    for topic in call.message.topics:
        error = _topic_error(node, reading, topic.name)
        answers = TopicResponse(topic.name)
        for index in topic.partition_indexes:
            answer = PartitionResponse(index)
            if error:
                answer.error_code, answer.error_message = error, error.message
            else:
                _describe(node, topic.name, index, answer)
            answers.partitions.append(answer)
            if pace.spent(PRODUCER_US * (1 + len(answer.active_producers))):
                yield
        response.topics.append(answers)
        if pace.spent(reading.cost_us):
            yield
    reading.end()
    yield from node.boundary.answer_in_slices(call, response)


def _topic_error(node: BrokerNode, reading: Permission, name: str) -> ErrorCode:
    if topic_name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not reading.allows(name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    is_known = name == METADATA_TOPIC or name in node.view.image.topic_names()
    return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _describe(node: BrokerNode, topic: str, index: int, answer: PartitionResponse) -> None:
    if topic == METADATA_TOPIC and index == METADATA_PARTITION:
        return  # the log of the quorum has no producers
    hosted = node.replicas.get(topic, index)
    if hosted is None or hosted.partition is None:
        answer.error_code = node.missing_partition(topic, index)
        return
    found = hosted.partition.active_producers()
    if isinstance(found, ErrorCode):
        answer.error_code = found
        return
    answer.active_producers = [
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp_ms,
            one.coordinator_epoch,
            one.transaction_start,
        )
        for one in found
    ]
