"""DescribeDelegationTokenResponse: a response of key 41, versions 1-3, flexible 2+.

Generated from schemas/DescribeDelegationTokenResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribedDelegationToken(Message):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeDelegationTokenResponse(Message):
    error_code: int = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeDelegationTokenResponse", 41, "response",
    (1, 3), (2, 32767),
    (
        ("DescribeDelegationTokenResponse", (
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("tokens", "Tokens", "DescribedDelegationToken", 1, (1, 3), None, None, None, None, 0, ""),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 3), None, None, None, None, 0, 0),
        )),
        ("DescribedDelegationToken", (
            ("principal_type", "PrincipalType", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("principal_name", "PrincipalName", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("token_requester_principal_type", "TokenRequesterPrincipalType", "string", 0, (3, 3), None, None, None, None, 0, ""),
            ("token_requester_principal_name", "TokenRequesterPrincipalName", "string", 0, (3, 3), None, None, None, None, 0, ""),
            ("issue_timestamp", "IssueTimestamp", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("expiry_timestamp", "ExpiryTimestamp", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("max_timestamp", "MaxTimestamp", "int64", 0, (1, 3), None, None, None, None, 0, 0),
            ("token_id", "TokenId", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("hmac", "Hmac", "bytes", 0, (1, 3), None, None, None, None, 0, ""),
            ("renewers", "Renewers", "DescribedDelegationTokenRenewer", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("DescribedDelegationTokenRenewer", (
            ("principal_type", "PrincipalType", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("principal_name", "PrincipalName", "string", 0, (1, 3), None, None, None, None, 0, ""),
        )),
    ),
)
