"""DescribeShareGroupOffsets: how far a share group has come, and how far it is behind (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kraftd.acl import AclOperation
from kraftd.groups import topics as known
from kraftd.groups.call import Call
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.share.asking import Asking, Offsets
from kraftd.groups.share.group import ShareGroup
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kraftd.messages.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from kraftd.messages.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
)
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

NO_OFFSET = NO_LAG = NO_COUNT = -1

Put = Callable[[DescribeShareGroupOffsetsResponseGroup], None]
Topic = DescribeShareGroupOffsetsResponseTopic
Partition = DescribeShareGroupOffsetsResponsePartition


class Progress:
    """The progress of one group."""

    def __init__(self, shards: GroupShards, asking: Asking, call: Call, group_id: str, put: Put) -> None:
        self.shards = shards
        self.asking = asking
        self.call = call
        self.group_id = group_id
        self.put = put
        self.names: dict[bytes, str] = {}

    def of_all(self, now_ms: int) -> None:
        """Of all partitions that are initialized. Raises Refusal."""
        state = self.shards.shard_of(self.group_id, now_ms).state
        group = state.groups.get(self.group_id)
        topics: dict[bytes, Sequence[int]] = {}
        if isinstance(group, ShareGroup):
            for topic_id, one in group.known().initialized.items():
                name = self.shards.topics.topic_name(topic_id)
                if name is not None and known.may(self.call, AclOperation.DESCRIBE, name):
                    self.names[topic_id] = name
                    topics[topic_id] = sorted(one.indexes)
        self._read(topics, [])

    def of(self, request: DescribeShareGroupOffsetsRequestGroup) -> None:
        """Of the partitions that are asked for."""
        topics: dict[bytes, Sequence[int]] = {}
        missing: list[Topic] = []
        refused: list[Topic] = []
        for topic in request.topics or ():
            topic_id = self.shards.topics.topic_id(topic.topic_name)
            if not known.may(self.call, AclOperation.DESCRIBE, topic.topic_name):
                refused.append(_without_offsets(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif topic_id is None:
                missing.append(_without_offsets(topic, ErrorCode.NONE))
            else:
                self.names[topic_id] = topic.topic_name
                topics[topic_id] = topic.partitions
        self._read(topics, [*missing, *refused])

    def _read(self, topics: Mapping[bytes, Sequence[int]], others: list[Topic]) -> None:
        if not topics:
            self._finish(others)
            return
        if not self.group_id or not all(_can_be_read(indexes) for indexes in topics.values()):
            error = ErrorCode.UNKNOWN_SERVER_ERROR  # as from Kafka, which does not ask its coordinators
            self.put(DescribeShareGroupOffsetsResponseGroup(self.group_id, [], error, error.message))
            return
        rows = [
            ReadStateSummaryData(topic_id, [PartitionData(index, -1) for index in indexes])
            for topic_id, indexes in topics.items()
        ]
        request = ReadShareGroupStateSummaryRequest(self.group_id, rows)
        self.asking.ask(request, partial(self._take, others))

    def _take(self, others: list[Topic], answer: ReadShareGroupStateSummaryResponse, now_ms: int) -> None:
        """Find the ends of the logs of those partitions that the group has begun."""
        places = [
            (self.names[topic.topic_id], row.partition)
            for topic in answer.results
            for row in topic.partitions
            if _has_lag(row)
        ]

        def found(offsets: Offsets, now_ms: int) -> None:
            rows = [
                Topic(
                    self.names[topic.topic_id],
                    topic.topic_id,
                    [self._row(self.names[topic.topic_id], row, offsets) for row in topic.partitions],
                )
                for topic in answer.results
            ]
            self._finish([*rows, *others])

        if places:
            self.asking.find_latest(places, found)
        else:
            found({}, now_ms)

    def _row(self, name: str, row: PartitionResult, offsets: Offsets) -> Partition:
        if row.error_code:  # as no information, not as an error
            return Partition(row.partition, NO_OFFSET, 0, NO_LAG)
        if not _has_lag(row):
            return Partition(row.partition, row.start_offset, row.leader_epoch, NO_LAG)
        end = offsets.get((name, row.partition), ErrorCode.UNKNOWN_SERVER_ERROR)
        if isinstance(end, ErrorCode):
            return Partition(row.partition, error_code=end, error_message=end.message)
        lag = end - row.start_offset - row.delivery_complete_count
        return Partition(row.partition, row.start_offset, row.leader_epoch, lag)

    def _finish(self, topics: list[Topic]) -> None:
        self.put(DescribeShareGroupOffsetsResponseGroup(self.group_id, topics))


def _has_lag(row: PartitionResult) -> bool:
    return not row.error_code and row.start_offset != NO_OFFSET and row.delivery_complete_count != NO_COUNT


def _can_be_read(indexes: Sequence[int]) -> bool:
    return len(indexes) > 0 and min(indexes) >= 0


def _without_offsets(topic: DescribeShareGroupOffsetsRequestTopic, error: ErrorCode) -> Topic:
    message = error.message if error else None
    rows = [Partition(index, NO_OFFSET, 0, NO_LAG, error, message) for index in topic.partitions]
    return Topic(topic.topic_name, ZERO_UUID, rows)
