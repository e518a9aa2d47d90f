"""ConsumerGroupMetadataKey: the key of a group coordinator's record of key 3, versions 0.

Generated from schemas/ConsumerGroupMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ConsumerGroupMetadataKey", 3, "coordinator-key",
    (0, 0), None,
    (
        ("ConsumerGroupMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
