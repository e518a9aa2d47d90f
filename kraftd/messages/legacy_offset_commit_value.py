"""LegacyOffsetCommitValue: the value of a group coordinator's record of key 0, versions 0.

Generated from schemas/LegacyOffsetCommitValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class LegacyOffsetCommitValue(Message):
    offset: int = 0
    metadata: str = ""
    commit_timestamp: int = 0


SCHEMA: Table = (
    "LegacyOffsetCommitValue", 0, "coordinator-value",
    (0, 0), None,
    (
        ("LegacyOffsetCommitValue", (
            ("offset", "offset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("metadata", "metadata", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("commit_timestamp", "commitTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
