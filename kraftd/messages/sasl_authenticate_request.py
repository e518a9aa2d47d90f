"""SaslAuthenticateRequest: a request of key 36, versions 0-2, flexible 2+.

Generated from schemas/SaslAuthenticateRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SaslAuthenticateRequest", 36, "request",
    (0, 2), (2, 32767),
    (
        ("SaslAuthenticateRequest", (
            ("auth_bytes", "AuthBytes", "bytes", 0, (0, 2), None, None, None, None, 0, ""),
        )),
    ),
)
