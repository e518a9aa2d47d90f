"""WriteShareGroupStateResponse: a response of key 85, versions 0-1, flexible 0+.

Generated from schemas/WriteShareGroupStateResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "WriteShareGroupStateResponse", 85, "response",
    (0, 1), (0, 32767),
    (
        ("WriteShareGroupStateResponse", (
            ("results", "Results", "WriteStateResult", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("WriteStateResult", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionResult", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionResult", (
            ("partition", "Partition", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
