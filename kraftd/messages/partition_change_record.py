"""PartitionChangeRecord: a metadata record of key 5, versions 0-2, flexible 0+.

Generated from schemas/PartitionChangeRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionChangeRecord(Message):
    partition_id: int = -1
    topic_id: bytes = bytes(16)
    isr: tuple[int, ...] | None = None
    leader: int = -2
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    directories: tuple[bytes, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "PartitionChangeRecord", 5, "metadata",
    (0, 2), (0, 32767),
    (
        ("PartitionChangeRecord", (
            ("partition_id", "PartitionId", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("topic_id", "TopicId", "uuid", 0, (0, 2), None, None, None, None, 0, ""),
            ("isr", "Isr", "int32", 1, (0, 2), (0, 32767), (0, 32767), 0, None, 0, None),
            ("leader", "Leader", "int32", 0, (0, 2), None, (0, 32767), 1, None, 0, -2),
            ("replicas", "Replicas", "int32", 1, (0, 2), (0, 32767), (0, 32767), 2, None, 0, None),
            ("removing_replicas", "RemovingReplicas", "int32", 1, (0, 2), (0, 32767), (0, 32767), 3, None, 0, None),
            ("adding_replicas", "AddingReplicas", "int32", 1, (0, 2), (0, 32767), (0, 32767), 4, None, 0, None),
            ("leader_recovery_state", "LeaderRecoveryState", "int8", 0, (0, 2), None, (0, 32767), 5, None, 0, -1),
            ("directories", "Directories", "uuid", 1, (1, 2), (1, 32767), (1, 32767), 8, None, 0, None),
            ("eligible_leader_replicas", "EligibleLeaderReplicas", "int32", 1, (2, 2), (2, 32767), (2, 32767), 6, None, 0, None),
            ("last_known_elr", "LastKnownElr", "int32", 1, (2, 2), (2, 32767), (2, 32767), 7, None, 0, None),
        )),
    ),
)
