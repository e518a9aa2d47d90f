"""ReadShareGroupStateRequest: a request of key 84, versions 0, flexible 0+.

Generated from schemas/ReadShareGroupStateRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[ReadStateData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ReadShareGroupStateRequest", 84, "request",
    (0, 0), (0, 32767),
    (
        ("ReadShareGroupStateRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "ReadStateData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ReadStateData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
