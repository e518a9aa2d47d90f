"""PushTelemetryResponse: a response of key 72, versions 0, flexible 0+.

Generated from schemas/PushTelemetryResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PushTelemetryResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "PushTelemetryResponse", 72, "response",
    (0, 0), (0, 32767),
    (
        ("PushTelemetryResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
