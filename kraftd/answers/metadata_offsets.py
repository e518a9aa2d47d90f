"""Offsets of the metadata log as a topic: by their names, and at the ends of epochs."""

from __future__ import annotations

from kraftd.answers.metadata_topic import epoch_error, partition_error
from kraftd.answers.view import ClusterView
from kraftd.messages.list_offsets_request import ListOffsetsPartition
from kraftd.messages.list_offsets_response import ListOffsetsPartitionResponse
from kraftd.messages.offset_for_leader_epoch_response import EpochEndOffset
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

NO_EPOCH = -1
NOT_ENDED = (1 << 63) - 1  # the end offset of the current epoch: after every position
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
NO_VERSION = 1 << 15


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


def list_offset(
    view: ClusterView, topic: str, requested: ListOffsetsPartition, allowed: bool, version: int
) -> ListOffsetsPartitionResponse | None:
    """The offset or the error of one partition; None if the log must be searched."""
    error: int = 0
    if not allowed:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif requested.timestamp < 0 and version < FIRST_VERSIONS.get(requested.timestamp, NO_VERSION):
        error = ErrorCode.UNSUPPORTED_VERSION
    error = error or partition_error(view, topic, requested.partition_index)
    error = error or epoch_error(view, requested.current_leader_epoch)
    if error:
        return ListOffsetsPartitionResponse(requested.partition_index, error)
    if requested.timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = view.log_start_offset
        epoch = epoch_or_none(view.epoch_of(offset))
        return ListOffsetsPartitionResponse(requested.partition_index, 0, -1, offset, epoch)
    if requested.timestamp == LATEST:
        offset = view.high_watermark
        return ListOffsetsPartitionResponse(
            requested.partition_index, 0, -1, offset, epoch_or_none(view.epoch_of(offset - 1))
        )
    if requested.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsPartitionResponse(requested.partition_index)
    assert topic == METADATA_TOPIC
    return None


def epoch_or_none(epoch: int | None) -> int:
    """An epoch as answers show it: -1 for none."""
    return -1 if epoch is None else epoch
