"""OffsetDeleteRequest: a request of key 47, versions 0.

Generated from schemas/OffsetDeleteRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetDeleteRequestPartition(Message):
    partition_index: int = 0


class OffsetDeleteRequestTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


SCHEMA: Table = (
    "OffsetDeleteRequest", 47, "request",
    (0, 0), None,
    (
        ("OffsetDeleteRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "OffsetDeleteRequestTopic", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OffsetDeleteRequestTopic", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "OffsetDeleteRequestPartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OffsetDeleteRequestPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
