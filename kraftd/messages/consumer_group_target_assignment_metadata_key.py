"""ConsumerGroupTargetAssignmentMetadataKey: the key of a group coordinator's record of key 6, versions 0.

Generated from schemas/ConsumerGroupTargetAssignmentMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ConsumerGroupTargetAssignmentMetadataKey", 6, "coordinator-key",
    (0, 0), None,
    (
        ("ConsumerGroupTargetAssignmentMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
