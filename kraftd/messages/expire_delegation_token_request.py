"""ExpireDelegationTokenRequest: a request of key 40, versions 1-2, flexible 2+.

Generated from schemas/ExpireDelegationTokenRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ExpireDelegationTokenRequest(Message):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ExpireDelegationTokenRequest", 40, "request",
    (1, 2), (2, 32767),
    (
        ("ExpireDelegationTokenRequest", (
            ("hmac", "Hmac", "bytes", 0, (1, 2), None, None, None, None, 0, ""),
            ("expiry_time_period_ms", "ExpiryTimePeriodMs", "int64", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
