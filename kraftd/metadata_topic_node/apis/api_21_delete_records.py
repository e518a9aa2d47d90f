"""DeleteRecords (21), v0-2: refused, for snapshots alone shorten the metadata log (KIP-630).

Authorization: DELETE on each topic. Sent by: admin clients, to the leader of a partition. Answered at once.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED; POLICY_VIOLATION for the metadata topic,
NOT_LEADER_OR_FOLLOWER for any other.
Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.unread_denials import unread as unread
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    response, pace = DeleteRecordsResponse(), Pace()
    deleting = Permission(node.boundary, call, AclOperation.DELETE, AclResourceType.TOPIC)
    for topic in call.message.topics:
        is_metadata = topic.name == METADATA_TOPIC
        error = ErrorCode.POLICY_VIOLATION if is_metadata else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not deleting.allows(topic.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if pace.spent(ROW_US + deleting.cost_us):
            yield
        partitions = []
        for one in topic.partitions:
            partitions.append(DeleteRecordsPartitionResult(one.partition_index, -1, error))
            if pace.spent(ROW_US):
                yield
        response.topics.append(DeleteRecordsTopicResult(topic.name, partitions))
    deleting.end()
    yield from node.boundary.answer_in_slices(call, response)
