"""OffsetFetchResponse: a response of key 9, versions 1-10, flexible 6+.

Generated from schemas/OffsetFetchResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetFetchResponsePartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchResponseTopic(Message):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchResponsePartitions(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchResponseTopics(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[OffsetFetchResponsePartitions] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchResponseGroup(Message):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = []
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetFetchResponse", 9, "response",
    (1, 10), (6, 32767),
    (
        ("OffsetFetchResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (3, 10), None, None, None, None, 1, 0),
            ("topics", "Topics", "OffsetFetchResponseTopic", 1, (1, 7), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (2, 7), None, None, None, None, 1, 0),
            ("groups", "Groups", "OffsetFetchResponseGroup", 1, (8, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetFetchResponseTopic", (
            ("name", "Name", "string", 0, (1, 7), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "OffsetFetchResponsePartition", 1, (1, 7), None, None, None, None, 0, ""),
        )),
        ("OffsetFetchResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 7), None, None, None, None, 0, 0),
            ("committed_offset", "CommittedOffset", "int64", 0, (1, 7), None, None, None, None, 0, 0),
            ("committed_leader_epoch", "CommittedLeaderEpoch", "int32", 0, (5, 7), None, None, None, None, 1, -1),
            ("metadata", "Metadata", "string", 0, (1, 7), (0, 7), None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (1, 7), None, None, None, None, 0, 0),
        )),
        ("OffsetFetchResponseGroup", (
            ("group_id", "GroupId", "string", 0, (8, 10), None, None, None, None, 0, ""),
            ("topics", "Topics", "OffsetFetchResponseTopics", 1, (8, 10), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (8, 10), None, None, None, None, 0, 0),
        )),
        ("OffsetFetchResponseTopics", (
            ("name", "Name", "string", 0, (8, 9), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (10, 10), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "OffsetFetchResponsePartitions", 1, (8, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetFetchResponsePartitions", (
            ("partition_index", "PartitionIndex", "int32", 0, (8, 10), None, None, None, None, 0, 0),
            ("committed_offset", "CommittedOffset", "int64", 0, (8, 10), None, None, None, None, 0, 0),
            ("committed_leader_epoch", "CommittedLeaderEpoch", "int32", 0, (8, 10), None, None, None, None, 1, -1),
            ("metadata", "Metadata", "string", 0, (8, 10), (8, 32767), None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (8, 10), None, None, None, None, 0, 0),
        )),
    ),
)
