"""DeleteRecordsResponse: a response of key 21, versions 0-2, flexible 2+.

Generated from schemas/DeleteRecordsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteRecordsPartitionResult(Message):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteRecordsTopicResult(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteRecordsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteRecordsResponse", 21, "response",
    (0, 2), (2, 32767),
    (
        ("DeleteRecordsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "DeleteRecordsTopicResult", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("DeleteRecordsTopicResult", (
            ("name", "Name", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "DeleteRecordsPartitionResult", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("DeleteRecordsPartitionResult", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("low_watermark", "LowWatermark", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
        )),
    ),
)
