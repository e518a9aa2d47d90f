"""RenewDelegationTokenRequest: a request of key 39, versions 1-2, flexible 2+.

Generated from schemas/RenewDelegationTokenRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RenewDelegationTokenRequest(Message):
    hmac: bytes = b""
    renew_period_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RenewDelegationTokenRequest", 39, "request",
    (1, 2), (2, 32767),
    (
        ("RenewDelegationTokenRequest", (
            ("hmac", "Hmac", "bytes", 0, (1, 2), None, None, None, None, 0, ""),
            ("renew_period_ms", "RenewPeriodMs", "int64", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
