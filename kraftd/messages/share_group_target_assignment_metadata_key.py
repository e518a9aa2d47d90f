"""ShareGroupTargetAssignmentMetadataKey: the key of a group coordinator's record of key 12, versions 0.

Generated from schemas/ShareGroupTargetAssignmentMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ShareGroupTargetAssignmentMetadataKey", 12, "coordinator-key",
    (0, 0), None,
    (
        ("ShareGroupTargetAssignmentMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
