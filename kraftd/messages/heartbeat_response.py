"""HeartbeatResponse: a response of key 12, versions 0-4, flexible 4+.

Generated from schemas/HeartbeatResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class HeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "HeartbeatResponse", 12, "response",
    (0, 4), (4, 32767),
    (
        ("HeartbeatResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 4), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
    ),
)
