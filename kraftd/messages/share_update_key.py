"""ShareUpdateKey: the key of a share coordinator's record of key 1, versions 0.

Generated from schemas/ShareUpdateKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareUpdateKey(Message):
    group_id: str = ""
    topic_id: bytes = bytes(16)
    partition: int = 0


SCHEMA: Table = (
    "ShareUpdateKey", 1, "coordinator-key",
    (0, 0), None,
    (
        ("ShareUpdateKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
