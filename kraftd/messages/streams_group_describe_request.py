"""StreamsGroupDescribeRequest: a request of key 89, versions 0, flexible 0+.

Generated from schemas/StreamsGroupDescribeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StreamsGroupDescribeRequest(Message):
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupDescribeRequest", 89, "request",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupDescribeRequest", (
            ("group_ids", "GroupIds", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("include_authorized_operations", "IncludeAuthorizedOperations", "bool", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
