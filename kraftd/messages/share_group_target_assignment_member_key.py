"""ShareGroupTargetAssignmentMemberKey: the key of a group coordinator's record of key 13, versions 0.

Generated from schemas/ShareGroupTargetAssignmentMemberKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""


SCHEMA: Table = (
    "ShareGroupTargetAssignmentMemberKey", 13, "coordinator-key",
    (0, 0), None,
    (
        ("ShareGroupTargetAssignmentMemberKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
