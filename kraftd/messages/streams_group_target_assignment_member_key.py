"""StreamsGroupTargetAssignmentMemberKey: the key of a group coordinator's record of key 21, versions 0.

Generated from schemas/StreamsGroupTargetAssignmentMemberKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""


SCHEMA: Table = (
    "StreamsGroupTargetAssignmentMemberKey", 21, "coordinator-key",
    (0, 0), None,
    (
        ("StreamsGroupTargetAssignmentMemberKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
