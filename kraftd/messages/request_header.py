"""RequestHeader: a header, versions 1-2, flexible 2+.

Generated from schemas/RequestHeader.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RequestHeader(Message):
    request_api_key: int = 0
    request_api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RequestHeader", None, "header",
    (1, 2), (2, 32767),
    (
        ("RequestHeader", (
            ("request_api_key", "RequestApiKey", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("request_api_version", "RequestApiVersion", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("correlation_id", "CorrelationId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("client_id", "ClientId", "string", 0, (1, 2), (1, 32767), None, None, (0, -1), 0, ""),
        )),
    ),
)
