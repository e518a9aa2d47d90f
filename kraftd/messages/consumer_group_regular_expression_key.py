"""ConsumerGroupRegularExpressionKey: the key of a group coordinator's record of key 16, versions 0.

Generated from schemas/ConsumerGroupRegularExpressionKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = ""
    regular_expression: str = ""


SCHEMA: Table = (
    "ConsumerGroupRegularExpressionKey", 16, "coordinator-key",
    (0, 0), None,
    (
        ("ConsumerGroupRegularExpressionKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("regular_expression", "RegularExpression", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
