"""RenewDelegationTokenResponse: a response of key 39, versions 1-2, flexible 2+.

Generated from schemas/RenewDelegationTokenResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RenewDelegationTokenResponse(Message):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RenewDelegationTokenResponse", 39, "response",
    (1, 2), (2, 32767),
    (
        ("RenewDelegationTokenResponse", (
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("expiry_timestamp_ms", "ExpiryTimestampMs", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
