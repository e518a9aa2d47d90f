"""FenceBrokerRecord: a metadata record of key 7, versions 0, flexible 0+.

Generated from schemas/FenceBrokerRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class FenceBrokerRecord(Message):
    id: int = 0
    epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FenceBrokerRecord", 7, "metadata",
    (0, 0), (0, 32767),
    (
        ("FenceBrokerRecord", (
            ("id", "Id", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("epoch", "Epoch", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
