"""DescribeQuorumRequest: a request of key 55, versions 0-2, flexible 0+.

Generated from schemas/DescribeQuorumRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeQuorumRequest(Message):
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeQuorumRequest", 55, "request",
    (0, 2), (0, 32767),
    (
        ("DescribeQuorumRequest", (
            ("topics", "Topics", "TopicData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
        )),
    ),
)
