"""DeleteGroupsResponse: a response of key 42, versions 0-2, flexible 2+.

Generated from schemas/DeleteGroupsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeletableGroupResult(Message):
    group_id: str = ""
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteGroupsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteGroupsResponse", 42, "response",
    (0, 2), (2, 32767),
    (
        ("DeleteGroupsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("results", "Results", "DeletableGroupResult", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("DeletableGroupResult", (
            ("group_id", "GroupId", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
        )),
    ),
)
