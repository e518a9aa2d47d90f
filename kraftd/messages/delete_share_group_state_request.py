"""DeleteShareGroupStateRequest: a request of key 86, versions 0, flexible 0+.

Generated from schemas/DeleteShareGroupStateRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[DeleteStateData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteShareGroupStateRequest", 86, "request",
    (0, 0), (0, 32767),
    (
        ("DeleteShareGroupStateRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "DeleteStateData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DeleteStateData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
