"""AbortTransactionRecord: a metadata record of key 25, versions 0, flexible 0+.

Generated from schemas/AbortTransactionRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AbortTransactionRecord(Message):
    reason: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AbortTransactionRecord", 25, "metadata",
    (0, 0), (0, 32767),
    (
        ("AbortTransactionRecord", (
            ("reason", "Reason", "string", 0, (0, 0), (0, 32767), (0, 32767), 0, None, 0, None),
        )),
    ),
)
