"""The metadata log as a topic: its description, and the errors for its partitions."""

from __future__ import annotations

from kraftd.answers.nodes import MetadataPartition
from kraftd.answers.view import ClusterView
from kraftd.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kraftd.requests.call import Call
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.error_code import ErrorCode


def declares_itself(call: Call) -> bool:
    """Return whether the client's id says that it reads the metadata log alone."""
    return call.client_id.startswith(METADATA_TOPIC)


def describe(partition: MetadataPartition, *, is_internal: bool) -> MetadataResponseTopic:
    """The topic for Metadata. All replicas count as in sync: each reports how far it may be read.

    It is internal in a list of all topics: patterns of Java's consumers leave it out then. To a client that
    names it, it is not, as in Kafka's own `Topic.isInternal`: Spark's connector reads no internal topic.
    """
    replicas = tuple(partition.replicas)
    error = ErrorCode.LEADER_NOT_AVAILABLE if partition.leader_id < 0 else 0
    return MetadataResponseTopic(
        0,
        METADATA_TOPIC,
        METADATA_TOPIC_ID,
        is_internal,
        [
            MetadataResponsePartition(
                error, METADATA_PARTITION, partition.leader_id, partition.leader_epoch, replicas, replicas
            )
        ],
    )


def partition_error(view: ClusterView, topic: str, index: int) -> int:
    """The error for a partition that is not the metadata log's; 0 for that one."""
    if topic == METADATA_TOPIC:
        return 0 if index == METADATA_PARTITION else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic_id = view.image.topic_names().get(topic)
    if topic_id is None or view.image.partition(topic_id, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def epoch_error(view: ClusterView, epoch: int) -> int:
    """The error for the leader epoch that a client knows, -1 where it knows none (KIP-320)."""
    if 0 <= epoch < view.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > view.epoch else 0
