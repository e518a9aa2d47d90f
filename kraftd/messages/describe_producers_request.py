"""DescribeProducersRequest: a request of key 61, versions 0, flexible 0+.

Generated from schemas/DescribeProducersRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicRequest(Message):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeProducersRequest", 61, "request",
    (0, 0), (0, 32767),
    (
        ("DescribeProducersRequest", (
            ("topics", "Topics", "TopicRequest", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicRequest", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition_indexes", "PartitionIndexes", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
