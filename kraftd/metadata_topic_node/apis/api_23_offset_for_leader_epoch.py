"""OffsetForLeaderEpoch (23), v2-4: where an epoch ended in the metadata log (KIP-320).

Authorization: CLUSTER_ACTION on the cluster, or DESCRIBE on the topic. Sent by: consumers that validate their
position. Answered at once.
Errors, per partition: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER for the partitions of brokers, and where Metadata names
another node as the metadata log's leader, or none; OFFSET_NOT_AVAILABLE where this node is named but
follows, until it knows that the epoch is over.
Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.metadata_offsets import end_of
from kraftd.answers.metadata_topic import epoch_error, partition_error
from kraftd.answers.nodes import metadata_partition
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kraftd.requests.permission import Permission
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


PARTITION_US = 4  # microseconds, for the pace


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    view, pace = node.view, Pace()
    is_named_leader = metadata_partition(view, node.settings, call.listener).leader_id == view.node_id
    cluster = (AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
    of_a_broker = node.boundary.allows_quietly(call, *cluster)
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, AclResourceType.TOPIC)
    response = OffsetForLeaderEpochResponse()
    for topic in call.message.topics:
        allowed = of_a_broker or describing.allows(topic.topic)
        if pace.spent(ROW_US + describing.cost_us):
            yield
        ends = []
        for requested in topic.partitions:
            error = partition_error(view, topic.topic, requested.partition)
            error = error or epoch_error(view, requested.current_leader_epoch)
            if not allowed:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if error:
                ends.append(EpochEndOffset(error, requested.partition))
            else:
                ends.append(end_of(view, is_named_leader, requested.partition, requested.leader_epoch))
            if pace.spent(PARTITION_US):
                yield
        response.topics.append(OffsetForLeaderTopicResult(topic.topic, ends))
    describing.end()
    yield from node.boundary.answer_in_slices(call, response)
