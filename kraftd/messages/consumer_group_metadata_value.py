"""ConsumerGroupMetadataValue: the value of a group coordinator's record of key 3, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupMetadataValue", 3, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupMetadataValue", (
            ("epoch", "Epoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("metadata_hash", "MetadataHash", "int64", 0, (0, 0), None, (0, 32767), 0, None, 0, 0),
        )),
    ),
)
