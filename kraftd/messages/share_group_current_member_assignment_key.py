"""ShareGroupCurrentMemberAssignmentKey: the key of a group coordinator's record of key 14, versions 0.

Generated from schemas/ShareGroupCurrentMemberAssignmentKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""


SCHEMA: Table = (
    "ShareGroupCurrentMemberAssignmentKey", 14, "coordinator-key",
    (0, 0), None,
    (
        ("ShareGroupCurrentMemberAssignmentKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
