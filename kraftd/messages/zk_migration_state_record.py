"""ZkMigrationStateRecord: a metadata record of key 21, versions 0, flexible 0+.

Generated from schemas/ZkMigrationStateRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ZkMigrationStateRecord(Message):
    zk_migration_state: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ZkMigrationStateRecord", 21, "metadata",
    (0, 0), (0, 32767),
    (
        ("ZkMigrationStateRecord", (
            ("zk_migration_state", "ZkMigrationState", "int8", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
