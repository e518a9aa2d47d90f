"""StreamsGroupTargetAssignmentMetadataKey: the key of a group coordinator's record of key 20, versions 0.

Generated from schemas/StreamsGroupTargetAssignmentMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "StreamsGroupTargetAssignmentMetadataKey", 20, "coordinator-key",
    (0, 0), None,
    (
        ("StreamsGroupTargetAssignmentMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
