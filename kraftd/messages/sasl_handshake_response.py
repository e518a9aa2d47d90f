"""SaslHandshakeResponse: a response of key 17, versions 0-1.

Generated from schemas/SaslHandshakeResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SaslHandshakeResponse(Message):
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()


SCHEMA: Table = (
    "SaslHandshakeResponse", 17, "response",
    (0, 1), None,
    (
        ("SaslHandshakeResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("mechanisms", "Mechanisms", "string", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
