"""LeaveGroupRequest: a request of key 13, versions 0-5, flexible 4+.

Generated from schemas/LeaveGroupRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class MemberIdentity(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaveGroupRequest(Message):
    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "LeaveGroupRequest", 13, "request",
    (0, 5), (4, 32767),
    (
        ("LeaveGroupRequest", (
            ("group_id", "GroupId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("members", "Members", "MemberIdentity", 1, (3, 5), None, None, None, None, 0, ""),
        )),
        ("MemberIdentity", (
            ("member_id", "MemberId", "string", 0, (3, 5), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (3, 5), (3, 32767), None, None, None, 0, None),
            ("reason", "Reason", "string", 0, (5, 5), (5, 32767), None, None, None, 1, None),
        )),
    ),
)
