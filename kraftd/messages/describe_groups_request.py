"""DescribeGroupsRequest: a request of key 15, versions 0-6, flexible 5+.

Generated from schemas/DescribeGroupsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeGroupsRequest(Message):
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeGroupsRequest", 15, "request",
    (0, 6), (5, 32767),
    (
        ("DescribeGroupsRequest", (
            ("groups", "Groups", "string", 1, (0, 6), None, None, None, None, 0, ""),
            ("include_authorized_operations", "IncludeAuthorizedOperations", "bool", 0, (3, 6), None, None, None, None, 0, 0),
        )),
    ),
)
