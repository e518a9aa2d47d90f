"""AlterShareGroupOffsetsResponse: a response of key 91, versions 0, flexible 0+.

Generated from schemas/AlterShareGroupOffsetsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterShareGroupOffsetsResponse", 91, "response",
    (0, 0), (0, 32767),
    (
        ("AlterShareGroupOffsetsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("responses", "Responses", "AlterShareGroupOffsetsResponseTopic", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("AlterShareGroupOffsetsResponseTopic", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "AlterShareGroupOffsetsResponsePartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("AlterShareGroupOffsetsResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
