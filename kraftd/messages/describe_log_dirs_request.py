"""DescribeLogDirsRequest: a request of key 35, versions 1-5, flexible 2+.

Generated from schemas/DescribeLogDirsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribableLogDirTopic(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeLogDirsRequest", 35, "request",
    (1, 5), (2, 32767),
    (
        ("DescribeLogDirsRequest", (
            ("topics", "Topics", "DescribableLogDirTopic", 1, (1, 5), (0, 32767), None, None, None, 0, ""),
        )),
        ("DescribableLogDirTopic", (
            ("topic", "Topic", "string", 0, (1, 5), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (1, 5), None, None, None, None, 0, ""),
        )),
    ),
)
