"""AddOffsetsToTxnResponse: a response of key 25, versions 0-4, flexible 3+.

Generated from schemas/AddOffsetsToTxnResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddOffsetsToTxnResponse", 25, "response",
    (0, 4), (3, 32767),
    (
        ("AddOffsetsToTxnResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
    ),
)
