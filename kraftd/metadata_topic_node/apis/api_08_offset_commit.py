"""OffsetCommit (8), v2-10: refused. Brokers do not know the metadata topic, so its offsets are not kept.

Authorization: READ on the group, then on each topic. Sent by: consumers of the metadata log alone, whose
coordinator is this node. Answered at once. Errors: GROUP_AUTHORIZATION_FAILED; per topic
TOPIC_AUTHORIZATION_FAILED and UNKNOWN_TOPIC_OR_PARTITION, as from a broker (UNKNOWN_TOPIC_ID from v10 on);
NOT_COORDINATOR if other topics are named, which a broker keeps. Differs from Apache Kafka: its controllers do
not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftd.metadata_topic_node.not_coordinator import asks_for_log
from kraftd.metadata_topic_node.not_coordinator import handle as refuse
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

FIRST_VERSION_WITH_IDS = 10


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    request, pace = call.message, Pace()
    if not (yield from asks_for_log(request.topics, pace)):
        yield from refuse(node, call)
    read = AclOperation.READ
    if not node.boundary.allows(call, read, AclResourceType.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not node.boundary.allows(call, read, AclResourceType.TOPIC, METADATA_TOPIC):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif call.version >= FIRST_VERSION_WITH_IDS:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    response = OffsetCommitResponse()
    for topic in request.topics:
        partitions = []
        for one in topic.partitions:
            partitions.append(OffsetCommitResponsePartition(one.partition_index, error))
            if pace.spent(ROW_US):
                yield
        response.topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions))
        if pace.spent(ROW_US):
            yield
    yield from node.boundary.answer_in_slices(call, response)
