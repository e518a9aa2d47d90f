"""CreateAclsResponse: a response of key 30, versions 1-3, flexible 2+.

Generated from schemas/CreateAclsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AclCreationResult(Message):
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreateAclsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AclCreationResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateAclsResponse", 30, "response",
    (1, 3), (2, 32767),
    (
        ("CreateAclsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 3), None, None, None, None, 0, 0),
            ("results", "Results", "AclCreationResult", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("AclCreationResult", (
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
