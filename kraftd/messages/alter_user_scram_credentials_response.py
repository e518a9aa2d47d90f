"""AlterUserScramCredentialsResponse: a response of key 51, versions 0, flexible 0+.

Generated from schemas/AlterUserScramCredentialsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterUserScramCredentialsResponse", 51, "response",
    (0, 0), (0, 32767),
    (
        ("AlterUserScramCredentialsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("results", "Results", "AlterUserScramCredentialsResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("AlterUserScramCredentialsResult", (
            ("user", "User", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
