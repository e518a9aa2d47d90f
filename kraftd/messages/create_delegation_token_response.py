"""CreateDelegationTokenResponse: a response of key 38, versions 1-3, flexible 2+.

Generated from schemas/CreateDelegationTokenResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreateDelegationTokenResponse(Message):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateDelegationTokenResponse", 38, "response",
    (1, 3), (2, 32767),
    (
        ("CreateDelegationTokenResponse", (
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("principal_type", "PrincipalType", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("principal_name", "PrincipalName", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("token_requester_principal_type", "TokenRequesterPrincipalType", "string", 0, (3, 3), None, None, None, None, 0, ""),
            ("token_requester_principal_name", "TokenRequesterPrincipalName", "string", 0, (3, 3), None, None, None, None, 0, ""),
            ("issue_timestamp_ms", "IssueTimestampMs", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("expiry_timestamp_ms", "ExpiryTimestampMs", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("max_timestamp_ms", "MaxTimestampMs", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("token_id", "TokenId", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("hmac", "Hmac", "bytes", 0, (1, 3), None, None, None, None, 0, ""),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 3), None, None, None, None, 0, 0),
        )),
    ),
)
