"""DescribeTopicPartitionsRequest: a request of key 75, versions 0, flexible 0+.

Generated from schemas/DescribeTopicPartitionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicRequest(Message):
    name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Cursor(Message):
    topic_name: str = ""
    partition_index: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = []
    response_partition_limit: int = 2000
    cursor: Cursor | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeTopicPartitionsRequest", 75, "request",
    (0, 0), (0, 32767),
    (
        ("DescribeTopicPartitionsRequest", (
            ("topics", "Topics", "TopicRequest", 1, (0, 0), None, None, None, None, 0, ""),
            ("response_partition_limit", "ResponsePartitionLimit", "int32", 0, (0, 0), None, None, None, None, 0, 2000),
            ("cursor", "Cursor", "Cursor", 0, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
        ("TopicRequest", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Cursor", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
