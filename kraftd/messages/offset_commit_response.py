"""OffsetCommitResponse: a response of key 8, versions 2-10, flexible 8+.

Generated from schemas/OffsetCommitResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetCommitResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetCommitResponseTopic(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[OffsetCommitResponsePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetCommitResponse", 8, "response",
    (2, 10), (8, 32767),
    (
        ("OffsetCommitResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (3, 10), None, None, None, None, 1, 0),
            ("topics", "Topics", "OffsetCommitResponseTopic", 1, (2, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetCommitResponseTopic", (
            ("name", "Name", "string", 0, (2, 9), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (10, 10), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "OffsetCommitResponsePartition", 1, (2, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetCommitResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (2, 10), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (2, 10), None, None, None, None, 0, 0),
        )),
    ),
)
