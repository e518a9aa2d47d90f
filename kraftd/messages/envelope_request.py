"""EnvelopeRequest: a request of key 58, versions 0, flexible 0+.

Generated from schemas/EnvelopeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EnvelopeRequest(Message):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EnvelopeRequest", 58, "request",
    (0, 0), (0, 32767),
    (
        ("EnvelopeRequest", (
            ("request_data", "RequestData", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
            ("request_principal", "RequestPrincipal", "bytes", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("client_host_address", "ClientHostAddress", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
