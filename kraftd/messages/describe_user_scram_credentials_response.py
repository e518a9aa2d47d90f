"""DescribeUserScramCredentialsResponse: a response of key 50, versions 0, flexible 0+.

Generated from schemas/DescribeUserScramCredentialsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CredentialInfo(Message):
    mechanism: int = 0
    iterations: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeUserScramCredentialsResponse", 50, "response",
    (0, 0), (0, 32767),
    (
        ("DescribeUserScramCredentialsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("results", "Results", "DescribeUserScramCredentialsResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DescribeUserScramCredentialsResult", (
            ("user", "User", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("credential_infos", "CredentialInfos", "CredentialInfo", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("CredentialInfo", (
            ("mechanism", "Mechanism", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("iterations", "Iterations", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
