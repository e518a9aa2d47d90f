"""BeginTransactionRecord: a metadata record of key 23, versions 0, flexible 0+.

Generated from schemas/BeginTransactionRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BeginTransactionRecord(Message):
    name: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BeginTransactionRecord", 23, "metadata",
    (0, 0), (0, 32767),
    (
        ("BeginTransactionRecord", (
            ("name", "Name", "string", 0, (0, 0), (0, 32767), (0, 32767), 0, None, 0, None),
        )),
    ),
)
