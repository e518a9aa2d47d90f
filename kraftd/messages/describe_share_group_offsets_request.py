"""DescribeShareGroupOffsetsRequest: a request of key 90, versions 0-1, flexible 0+.

Generated from schemas/DescribeShareGroupOffsetsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeShareGroupOffsetsRequest", 90, "request",
    (0, 1), (0, 32767),
    (
        ("DescribeShareGroupOffsetsRequest", (
            ("groups", "Groups", "DescribeShareGroupOffsetsRequestGroup", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("DescribeShareGroupOffsetsRequestGroup", (
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("topics", "Topics", "DescribeShareGroupOffsetsRequestTopic", 1, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
        ("DescribeShareGroupOffsetsRequestTopic", (
            ("topic_name", "TopicName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
