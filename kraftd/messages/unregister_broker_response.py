"""UnregisterBrokerResponse: a response of key 64, versions 0, flexible 0+.

Generated from schemas/UnregisterBrokerResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UnregisterBrokerResponse", 64, "response",
    (0, 0), (0, 32767),
    (
        ("UnregisterBrokerResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
