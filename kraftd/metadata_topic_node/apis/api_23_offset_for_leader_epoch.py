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
from kraftd.answers.long_answers import ROW_US, answer_in_slices
from kraftd.answers.metadata_topic import epoch_error, partition_error
from kraftd.answers.nodes import metadata_partition
from kraftd.answers.view import ClusterView
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kraftd.requests.permission import Permission
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


PARTITION_US = 4  # microseconds, for the pace
NO_EPOCH = -1
NOT_ENDED = (1 << 63) - 1  # the end offset of the current epoch: after every position


def end_of(view: ClusterView, is_named_leader: bool, partition: int, epoch: int) -> EpochEndOffset:
    """The answer for the partition: the end of the epoch. `is_named_leader`: Metadata names this node.

    The quorum's leader answers from its log, as in Kafka, because a new one learns the high watermark late. A
    replica that is named without leading (the quorum's leader serves no clients) may lag behind the reader.
    It returns an end only once it has committed later records. Readers have only committed records of the
    current epoch, none of which can be truncated: that epoch has no end yet.
    """
    end = view.end_offset_for_epoch(epoch) if epoch != NO_EPOCH else OffsetAndEpoch(-1, -1)
    if view.leader_id == view.node_id:
        ended = end if epoch <= view.epoch else OffsetAndEpoch(-1, -1)
        return EpochEndOffset(0, partition, ended.epoch, ended.offset)
    if not is_named_leader:
        return EpochEndOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER, partition)
    if epoch > view.epoch:
        return EpochEndOffset(ErrorCode.UNKNOWN_LEADER_EPOCH, partition)
    if epoch == view.epoch:
        return EpochEndOffset(0, partition, epoch, NOT_ENDED)
    if end.offset >= view.high_watermark:
        return EpochEndOffset(ErrorCode.OFFSET_NOT_AVAILABLE, partition)
    return EpochEndOffset(0, partition, end.epoch, end.offset)


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
    yield from answer_in_slices(node, call, response)
