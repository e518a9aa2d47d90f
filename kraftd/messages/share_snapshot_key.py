"""ShareSnapshotKey: the key of a share coordinator's record of key 0, versions 0.

Generated from schemas/ShareSnapshotKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareSnapshotKey(Message):
    group_id: str = ""
    topic_id: bytes = bytes(16)
    partition: int = 0


SCHEMA: Table = (
    "ShareSnapshotKey", 0, "coordinator-key",
    (0, 0), None,
    (
        ("ShareSnapshotKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
