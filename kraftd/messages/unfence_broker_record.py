"""UnfenceBrokerRecord: a metadata record of key 8, versions 0, flexible 0+.

Generated from schemas/UnfenceBrokerRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UnfenceBrokerRecord(Message):
    id: int = 0
    epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UnfenceBrokerRecord", 8, "metadata",
    (0, 0), (0, 32767),
    (
        ("UnfenceBrokerRecord", (
            ("id", "Id", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("epoch", "Epoch", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
