"""DeleteGroupsRequest: a request of key 42, versions 0-2, flexible 2+.

Generated from schemas/DeleteGroupsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteGroupsRequest(Message):
    groups_names: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteGroupsRequest", 42, "request",
    (0, 2), (2, 32767),
    (
        ("DeleteGroupsRequest", (
            ("groups_names", "GroupsNames", "string", 1, (0, 2), None, None, None, None, 0, ""),
        )),
    ),
)
