"""ListOffsetsResponse: a response of key 2, versions 1-11, flexible 6+.

Generated from schemas/ListOffsetsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListOffsetsPartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListOffsetsTopicResponse(Message):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListOffsetsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListOffsetsResponse", 2, "response",
    (1, 11), (6, 32767),
    (
        ("ListOffsetsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (2, 11), None, None, None, None, 1, 0),
            ("topics", "Topics", "ListOffsetsTopicResponse", 1, (1, 11), None, None, None, None, 0, ""),
        )),
        ("ListOffsetsTopicResponse", (
            ("name", "Name", "string", 0, (1, 11), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "ListOffsetsPartitionResponse", 1, (1, 11), None, None, None, None, 0, ""),
        )),
        ("ListOffsetsPartitionResponse", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 11), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 11), None, None, None, None, 0, 0),
            ("timestamp", "Timestamp", "int64", 0, (1, 11), None, None, None, None, 0, -1),
            ("offset", "Offset", "int64", 0, (1, 11), None, None, None, None, 0, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (4, 11), None, None, None, None, 0, -1),
        )),
    ),
)
