"""ShareGroupMetadataKey: the key of a group coordinator's record of key 11, versions 0.

Generated from schemas/ShareGroupMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ShareGroupMetadataKey", 11, "coordinator-key",
    (0, 0), None,
    (
        ("ShareGroupMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
