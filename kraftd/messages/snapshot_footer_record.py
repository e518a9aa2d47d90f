"""SnapshotFooterRecord: data, versions 0, flexible 0+.

Generated from schemas/SnapshotFooterRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SnapshotFooterRecord(Message):
    version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SnapshotFooterRecord", None, "data",
    (0, 0), (0, 32767),
    (
        ("SnapshotFooterRecord", (
            ("version", "Version", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
