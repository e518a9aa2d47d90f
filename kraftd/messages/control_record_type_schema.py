"""ControlRecordTypeSchema: data, versions 0.

Generated from schemas/ControlRecordTypeSchema.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ControlRecordTypeSchema(Message):
    type: int = 0


SCHEMA: Table = (
    "ControlRecordTypeSchema", None, "data",
    (0, 0), None,
    (
        ("ControlRecordTypeSchema", (
            ("type", "Type", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
