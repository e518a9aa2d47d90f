"""EndTxnMarker: data, versions 0.

Generated from schemas/EndTxnMarker.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EndTxnMarker(Message):
    coordinator_epoch: int = 0


SCHEMA: Table = (
    "EndTxnMarker", None, "data",
    (0, 0), None,
    (
        ("EndTxnMarker", (
            ("coordinator_epoch", "CoordinatorEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
