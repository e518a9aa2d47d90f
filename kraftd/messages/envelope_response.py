"""EnvelopeResponse: a response of key 58, versions 0, flexible 0+.

Generated from schemas/EnvelopeResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EnvelopeResponse(Message):
    response_data: bytes | None = None
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EnvelopeResponse", 58, "response",
    (0, 0), (0, 32767),
    (
        ("EnvelopeResponse", (
            ("response_data", "ResponseData", "bytes", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
