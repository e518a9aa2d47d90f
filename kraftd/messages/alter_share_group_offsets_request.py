"""AlterShareGroupOffsetsRequest: a request of key 91, versions 0, flexible 0+.

Generated from schemas/AlterShareGroupOffsetsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int = 0
    start_offset: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterShareGroupOffsetsRequest", 91, "request",
    (0, 0), (0, 32767),
    (
        ("AlterShareGroupOffsetsRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "AlterShareGroupOffsetsRequestTopic", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("AlterShareGroupOffsetsRequestTopic", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "AlterShareGroupOffsetsRequestPartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("AlterShareGroupOffsetsRequestPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
