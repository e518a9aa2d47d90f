"""OffsetForLeaderEpoch (23), v2-4: where a leader epoch ended in a partition that this broker leads (KIP-101,
KIP-320).

Authorization: DESCRIBE on the topic, or CLUSTER_ACTION. Sent by: consumers and followers. Answered at once.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.metadata_offsets import end_of
from kraftd.answers.metadata_topic import epoch_error, partition_error
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kraftd.partition.reading import end_offset_for_epoch
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition
    from kraftd.requests.call import Call

PARTITION_US = 8


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    boundary = node.boundary
    for_cluster = boundary.allows_quietly(
        call, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME
    )
    describing = Permission(boundary, call, AclOperation.DESCRIBE, AclResourceType.TOPIC)
    response, pace = OffsetForLeaderEpochResponse(), Pace()
    for topic in call.message.topics:
        allowed = for_cluster or describing.allows(topic.topic)
        answers = OffsetForLeaderTopicResult(topic.topic)
        for one in topic.partitions:
            answer = EpochEndOffset(partition=one.partition)
            if allowed:
                _answer(node, topic.topic, one, answer)
            else:
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answers.partitions.append(answer)
            if pace.spent(PARTITION_US):
                yield
        response.topics.append(answers)
        if pace.spent(describing.cost_us):
            yield
    describing.end()
    yield from boundary.answer_in_slices(call, response)


def _answer(
    node: BrokerNode, topic: str, requested: OffsetForLeaderPartition, answer: EpochEndOffset
) -> None:
    if topic == METADATA_TOPIC:
        error = partition_error(node.view, topic, requested.partition)
        error = error or epoch_error(node.view, requested.current_leader_epoch)
        if error:
            answer.error_code = error
            return
        end = end_of(node.view, True, requested.partition, requested.leader_epoch)
        answer.error_code, answer.leader_epoch = end.error_code, end.leader_epoch
        answer.end_offset = end.end_offset
        return
    hosted = node.replicas.get(topic, requested.partition)
    if hosted is None or hosted.partition is None:
        answer.error_code = node.missing_partition(topic, requested.partition)
        return
    found = end_offset_for_epoch(
        hosted.partition, requested.leader_epoch, current_leader_epoch=requested.current_leader_epoch
    )
    if isinstance(found, ErrorCode):
        answer.error_code = found
    else:
        answer.leader_epoch, answer.end_offset = found.epoch, found.offset
