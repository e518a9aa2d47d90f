"""ConsumerGroupDescribeRequest: a request of key 69, versions 0-1, flexible 0+.

Generated from schemas/ConsumerGroupDescribeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupDescribeRequest(Message):
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupDescribeRequest", 69, "request",
    (0, 1), (0, 32767),
    (
        ("ConsumerGroupDescribeRequest", (
            ("group_ids", "GroupIds", "string", 1, (0, 1), None, None, None, None, 0, ""),
            ("include_authorized_operations", "IncludeAuthorizedOperations", "bool", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
