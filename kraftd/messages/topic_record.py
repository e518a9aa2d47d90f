"""TopicRecord: a metadata record of key 2, versions 0, flexible 0+.

Generated from schemas/TopicRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicRecord(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "TopicRecord", 2, "metadata",
    (0, 0), (0, 32767),
    (
        ("TopicRecord", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
