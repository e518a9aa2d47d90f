"""RemoveAccessControlEntryRecord: a metadata record of key 19, versions 0, flexible 0+.

Generated from schemas/RemoveAccessControlEntryRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RemoveAccessControlEntryRecord(Message):
    id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RemoveAccessControlEntryRecord", 19, "metadata",
    (0, 0), (0, 32767),
    (
        ("RemoveAccessControlEntryRecord", (
            ("id", "Id", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
