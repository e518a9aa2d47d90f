"""AddRaftVoterResponse: a response of key 80, versions 0-1, flexible 0+.

Generated from schemas/AddRaftVoterResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AddRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddRaftVoterResponse", 80, "response",
    (0, 1), (0, 32767),
    (
        ("AddRaftVoterResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 1, ""),
        )),
    ),
)
