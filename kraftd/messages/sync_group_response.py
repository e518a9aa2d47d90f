"""SyncGroupResponse: a response of key 14, versions 0-5, flexible 4+.

Generated from schemas/SyncGroupResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SyncGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SyncGroupResponse", 14, "response",
    (0, 5), (4, 32767),
    (
        ("SyncGroupResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 5), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("protocol_type", "ProtocolType", "string", 0, (5, 5), (5, 32767), None, None, None, 1, None),
            ("protocol_name", "ProtocolName", "string", 0, (5, 5), (5, 32767), None, None, None, 1, None),
            ("assignment", "Assignment", "bytes", 0, (0, 5), None, None, None, None, 0, ""),
        )),
    ),
)
