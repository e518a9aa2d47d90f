"""ListGroupsRequest: a request of key 16, versions 0-5, flexible 3+.

Generated from schemas/ListGroupsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListGroupsRequest(Message):
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListGroupsRequest", 16, "request",
    (0, 5), (3, 32767),
    (
        ("ListGroupsRequest", (
            ("states_filter", "StatesFilter", "string", 1, (4, 5), None, None, None, None, 0, ""),
            ("types_filter", "TypesFilter", "string", 1, (5, 5), None, None, None, None, 0, ""),
        )),
    ),
)
