"""FindCoordinatorRequest: a request of key 10, versions 0-6, flexible 3+.

Generated from schemas/FindCoordinatorRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class FindCoordinatorRequest(Message):
    key: str = ""
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FindCoordinatorRequest", 10, "request",
    (0, 6), (3, 32767),
    (
        ("FindCoordinatorRequest", (
            ("key", "Key", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("key_type", "KeyType", "int8", 0, (1, 6), None, None, None, None, 0, 0),
            ("coordinator_keys", "CoordinatorKeys", "string", 1, (4, 6), None, None, None, None, 0, ""),
        )),
    ),
)
