"""EndTransactionRecord: a metadata record of key 24, versions 0, flexible 0+.

Generated from schemas/EndTransactionRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EndTransactionRecord(Message):
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EndTransactionRecord", 24, "metadata",
    (0, 0), (0, 32767),
    (
        ("EndTransactionRecord", (
        )),
    ),
)
