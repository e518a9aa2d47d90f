"""ConsumerGroupMemberMetadataKey: the key of a group coordinator's record of key 5, versions 0.

Generated from schemas/ConsumerGroupMemberMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""


SCHEMA: Table = (
    "ConsumerGroupMemberMetadataKey", 5, "coordinator-key",
    (0, 0), None,
    (
        ("ConsumerGroupMemberMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
