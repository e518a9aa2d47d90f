"""SnapshotHeaderRecord: data, versions 0, flexible 0+.

Generated from schemas/SnapshotHeaderRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SnapshotHeaderRecord(Message):
    version: int = 0
    last_contained_log_timestamp: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SnapshotHeaderRecord", None, "data",
    (0, 0), (0, 32767),
    (
        ("SnapshotHeaderRecord", (
            ("version", "Version", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("last_contained_log_timestamp", "LastContainedLogTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
