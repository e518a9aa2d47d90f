"""SaslAuthenticateResponse: a response of key 36, versions 0-2, flexible 2+.

Generated from schemas/SaslAuthenticateResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SaslAuthenticateResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SaslAuthenticateResponse", 36, "response",
    (0, 2), (2, 32767),
    (
        ("SaslAuthenticateResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 2), (0, 32767), None, None, None, 0, ""),
            ("auth_bytes", "AuthBytes", "bytes", 0, (0, 2), None, None, None, None, 0, ""),
            ("session_lifetime_ms", "SessionLifetimeMs", "int64", 0, (1, 2), None, None, None, None, 1, 0),
        )),
    ),
)
