"""LegacyOffsetCommitKey: the key of a group coordinator's record of key 0, versions 0.

Generated from schemas/LegacyOffsetCommitKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class LegacyOffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: int = 0


SCHEMA: Table = (
    "LegacyOffsetCommitKey", 0, "coordinator-key",
    (0, 0), None,
    (
        ("LegacyOffsetCommitKey", (
            ("group", "group", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic", "topic", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition", "partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
