"""DeleteRecords (21), v0-2: lets partitions that this broker leads begin at later offsets (KIP-107).

Authorization: DELETE on the topic. Sent by: admin clients. Answered when every replica begins there, at most
after the request's timeout. Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a topic that is only compacted,
INVALID_TOPIC_EXCEPTION for internal topics, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.topics import INTERNAL_TOPICS
from kraftd.answers.unread_denials import unread as unread
from kraftd.broker_node.partitions.record_deletions import NO_LOW_WATERMARK, Deletion
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from kraftd.partition.reading import delete_records
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.messages.delete_records_request import DeleteRecordsPartition
    from kraftd.requests.call import Call

PARTITION_US = 25  # to move a log's start


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    deleting = Permission(node.boundary, call, AclOperation.DELETE, AclResourceType.TOPIC)
    deletion, pace = Deletion(call), Pace()
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in call.message.topics:
        for one in topic.partitions:  # of one that is named repeatedly, the last offset counts
            wanted.setdefault(topic.name, {})[one.partition_index] = one
            if pace.spent(ROW_US):
                yield
    for name, partitions in wanted.items():
        allowed = deleting.allows(name)
        known = name == METADATA_TOPIC or name in node.view.image.topic_names()
        answers = DeleteRecordsTopicResult(name)
        for one in partitions.values():
            answer = DeleteRecordsPartitionResult(one.partition_index, NO_LOW_WATERMARK)
            if not allowed:
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not known:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                _delete(node, deletion, name, one, answer)
            answers.partitions.append(answer)
            if pace.spent(PARTITION_US):
                yield
        deletion.response.topics.append(answers)
        if pace.spent(deleting.cost_us):
            yield
    deleting.end()
    node.deletions.handled(deletion, node.now_ms)


def _delete(
    node: BrokerNode,
    deletion: Deletion,
    topic: str,
    requested: DeleteRecordsPartition,
    answer: DeleteRecordsPartitionResult,
) -> None:
    missing = node.missing_partition(topic, requested.partition_index)
    if missing is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        answer.error_code = missing
        return
    if topic in INTERNAL_TOPICS:
        answer.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return
    if topic == METADATA_TOPIC:
        answer.error_code = ErrorCode.POLICY_VIOLATION
        return
    hosted = node.replicas.get(topic, requested.partition_index)
    if hosted is None or hosted.partition is None:
        answer.error_code = missing
        return
    node.replicas.refresh_config(hosted)
    found = delete_records(hosted.partition, requested.offset)
    if isinstance(found, ErrorCode):
        answer.error_code = found
        return
    node.follow_up(hosted, list(found.effects))
    node.deletions.add(deletion, hosted, found.offset, answer)
