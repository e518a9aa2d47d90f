"""InitializeShareGroupStateRequest: a request of key 83, versions 0, flexible 0+.

Generated from schemas/InitializeShareGroupStateRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class InitializeStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class InitializeShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[InitializeStateData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "InitializeShareGroupStateRequest", 83, "request",
    (0, 0), (0, 32767),
    (
        ("InitializeShareGroupStateRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "InitializeStateData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("InitializeStateData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("state_epoch", "StateEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
