"""DeleteTopicsResponse: a response of key 20, versions 1-6, flexible 4+.

Generated from schemas/DeleteTopicsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeletableTopicResult(Message):
    name: str | None = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteTopicsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteTopicsResponse", 20, "response",
    (1, 6), (4, 32767),
    (
        ("DeleteTopicsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 6), None, None, None, None, 1, 0),
            ("responses", "Responses", "DeletableTopicResult", 1, (1, 6), None, None, None, None, 0, ""),
        )),
        ("DeletableTopicResult", (
            ("name", "Name", "string", 0, (1, 6), (6, 32767), None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (6, 6), None, None, None, None, 1, ""),
            ("error_code", "ErrorCode", "int16", 0, (1, 6), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (5, 6), (5, 32767), None, None, None, 1, None),
        )),
    ),
)
