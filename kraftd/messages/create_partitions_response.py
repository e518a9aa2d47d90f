"""CreatePartitionsResponse: a response of key 37, versions 0-3, flexible 2+.

Generated from schemas/CreatePartitionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreatePartitionsTopicResult(Message):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatePartitionsResponse(Message):
    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreatePartitionsResponse", 37, "response",
    (0, 3), (2, 32767),
    (
        ("CreatePartitionsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("results", "Results", "CreatePartitionsTopicResult", 1, (0, 3), None, None, None, None, 0, ""),
        )),
        ("CreatePartitionsTopicResult", (
            ("name", "Name", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 3), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
