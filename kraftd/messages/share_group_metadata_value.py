"""ShareGroupMetadataValue: the value of a group coordinator's record of key 11, versions 0, flexible 0+.

Generated from schemas/ShareGroupMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupMetadataValue", 11, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareGroupMetadataValue", (
            ("epoch", "Epoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("metadata_hash", "MetadataHash", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
