"""LeaveGroupResponse: a response of key 13, versions 0-5, flexible 4+.

Generated from schemas/LeaveGroupResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class MemberResponse(Message):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaveGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "LeaveGroupResponse", 13, "response",
    (0, 5), (4, 32767),
    (
        ("LeaveGroupResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 5), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("members", "Members", "MemberResponse", 1, (3, 5), None, None, None, None, 0, ""),
        )),
        ("MemberResponse", (
            ("member_id", "MemberId", "string", 0, (3, 5), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (3, 5), (3, 32767), None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (3, 5), None, None, None, None, 0, 0),
        )),
    ),
)
