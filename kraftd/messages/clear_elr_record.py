"""ClearElrRecord: a metadata record of key 28, versions 0, flexible 0+.

Generated from schemas/ClearElrRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ClearElrRecord(Message):
    topic_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ClearElrRecord", 28, "metadata",
    (0, 0), (0, 32767),
    (
        ("ClearElrRecord", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
