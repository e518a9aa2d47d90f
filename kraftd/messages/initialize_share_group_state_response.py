"""InitializeShareGroupStateResponse: a response of key 83, versions 0, flexible 0+.

Generated from schemas/InitializeShareGroupStateResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class InitializeStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "InitializeShareGroupStateResponse", 83, "response",
    (0, 0), (0, 32767),
    (
        ("InitializeShareGroupStateResponse", (
            ("results", "Results", "InitializeStateResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("InitializeStateResult", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionResult", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
