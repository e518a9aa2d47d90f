"""NoOpRecord: a metadata record of key 20, versions 0, flexible 0+.

Generated from schemas/NoOpRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class NoOpRecord(Message):
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "NoOpRecord", 20, "metadata",
    (0, 0), (0, 32767),
    (
        ("NoOpRecord", (
        )),
    ),
)
