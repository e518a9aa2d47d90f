"""ConsumerGroupPartitionMetadataKey: the key of a group coordinator's record of key 4, versions 0.

Generated from schemas/ConsumerGroupPartitionMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "ConsumerGroupPartitionMetadataKey", 4, "coordinator-key",
    (0, 0), None,
    (
        ("ConsumerGroupPartitionMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
