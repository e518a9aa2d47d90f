"""DescribeShareGroupOffsetsResponse: a response of key 90, versions 0-1, flexible 0+.

Generated from schemas/DescribeShareGroupOffsetsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeShareGroupOffsetsResponse", 90, "response",
    (0, 1), (0, 32767),
    (
        ("DescribeShareGroupOffsetsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("groups", "Groups", "DescribeShareGroupOffsetsResponseGroup", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("DescribeShareGroupOffsetsResponseGroup", (
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("topics", "Topics", "DescribeShareGroupOffsetsResponseTopic", 1, (0, 1), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
        ("DescribeShareGroupOffsetsResponseTopic", (
            ("topic_name", "TopicName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "DescribeShareGroupOffsetsResponsePartition", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("DescribeShareGroupOffsetsResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("lag", "Lag", "int64", 0, (1, 1), None, None, None, None, 1, -1),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
