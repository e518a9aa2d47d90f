"""RemoveTopicRecord: a metadata record of key 9, versions 0, flexible 0+.

Generated from schemas/RemoveTopicRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RemoveTopicRecord(Message):
    topic_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RemoveTopicRecord", 9, "metadata",
    (0, 0), (0, 32767),
    (
        ("RemoveTopicRecord", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
