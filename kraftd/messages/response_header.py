"""ResponseHeader: a header, versions 0-1, flexible 1+.

Generated from schemas/ResponseHeader.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ResponseHeader(Message):
    correlation_id: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ResponseHeader", None, "header",
    (0, 1), (1, 32767),
    (
        ("ResponseHeader", (
            ("correlation_id", "CorrelationId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
