"""OffsetDeleteResponse: a response of key 47, versions 0.

Generated from schemas/OffsetDeleteResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetDeleteResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = []


SCHEMA: Table = (
    "OffsetDeleteResponse", 47, "response",
    (0, 0), None,
    (
        ("OffsetDeleteResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 1, 0),
            ("topics", "Topics", "OffsetDeleteResponseTopic", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OffsetDeleteResponseTopic", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "OffsetDeleteResponsePartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OffsetDeleteResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
