"""SaslHandshakeRequest: a request of key 17, versions 0-1.

Generated from schemas/SaslHandshakeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SaslHandshakeRequest(Message):
    mechanism: str = ""


SCHEMA: Table = (
    "SaslHandshakeRequest", 17, "request",
    (0, 1), None,
    (
        ("SaslHandshakeRequest", (
            ("mechanism", "Mechanism", "string", 0, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
