"""ShareGroupDescribeRequest: a request of key 77, versions 1, flexible 0+.

Generated from schemas/ShareGroupDescribeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupDescribeRequest(Message):
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupDescribeRequest", 77, "request",
    (1, 1), (0, 32767),
    (
        ("ShareGroupDescribeRequest", (
            ("group_ids", "GroupIds", "string", 1, (1, 1), None, None, None, None, 0, ""),
            ("include_authorized_operations", "IncludeAuthorizedOperations", "bool", 0, (1, 1), None, None, None, None, 0, 0),
        )),
    ),
)
