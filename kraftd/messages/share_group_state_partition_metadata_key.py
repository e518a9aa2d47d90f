"""ShareGroupStatePartitionMetadataKey: the key of a group coordinator's record of key 15, versions 0.

Generated from schemas/ShareGroupStatePartitionMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ShareGroupStatePartitionMetadataKey", 15, "coordinator-key",
    (0, 0), None,
    (
        ("ShareGroupStatePartitionMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
