"""GroupMetadataKey: the key of a group coordinator's record of key 2, versions 0.

Generated from schemas/GroupMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class GroupMetadataKey(Message):
    group: str = ""


SCHEMA: Table = (
    "GroupMetadataKey", 2, "coordinator-key",
    (0, 0), None,
    (
        ("GroupMetadataKey", (
            ("group", "group", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
