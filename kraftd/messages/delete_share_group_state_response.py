"""DeleteShareGroupStateResponse: a response of key 86, versions 0, flexible 0+.

Generated from schemas/DeleteShareGroupStateResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteShareGroupStateResponse", 86, "response",
    (0, 0), (0, 32767),
    (
        ("DeleteShareGroupStateResponse", (
            ("results", "Results", "DeleteStateResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DeleteStateResult", (
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
