"""ConsumerGroupRegularExpressionValue: the value of a group coordinator's record of key 16, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupRegularExpressionValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupRegularExpressionValue(Message):
    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupRegularExpressionValue", 16, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupRegularExpressionValue", (
            ("topics", "Topics", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("version", "Version", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("timestamp", "Timestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
