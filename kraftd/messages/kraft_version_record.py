"""KRaftVersionRecord: data, versions 0, flexible 0+.

Generated from schemas/KRaftVersionRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class KRaftVersionRecord(Message):
    version: int = 0
    kraft_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "KRaftVersionRecord", None, "data",
    (0, 0), (0, 32767),
    (
        ("KRaftVersionRecord", (
            ("version", "Version", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("kraft_version", "KRaftVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
