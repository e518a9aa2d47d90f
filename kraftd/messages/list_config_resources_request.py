"""ListConfigResourcesRequest: a request of key 74, versions 0-1, flexible 0+.

Generated from schemas/ListConfigResourcesRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListConfigResourcesRequest(Message):
    resource_types: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListConfigResourcesRequest", 74, "request",
    (0, 1), (0, 32767),
    (
        ("ListConfigResourcesRequest", (
            ("resource_types", "ResourceTypes", "int8", 1, (1, 1), None, None, None, None, 0, ""),
        )),
    ),
)
