"""PartitionRecord: a metadata record of key 3, versions 0-2, flexible 0+.

Generated from schemas/PartitionRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionRecord(Message):
    partition_id: int = -1
    topic_id: bytes = bytes(16)
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: tuple[bytes, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "PartitionRecord", 3, "metadata",
    (0, 2), (0, 32767),
    (
        ("PartitionRecord", (
            ("partition_id", "PartitionId", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("topic_id", "TopicId", "uuid", 0, (0, 2), None, None, None, None, 0, ""),
            ("replicas", "Replicas", "int32", 1, (0, 2), None, None, None, None, 0, ""),
            ("isr", "Isr", "int32", 1, (0, 2), None, None, None, None, 0, ""),
            ("removing_replicas", "RemovingReplicas", "int32", 1, (0, 2), None, None, None, None, 0, ""),
            ("adding_replicas", "AddingReplicas", "int32", 1, (0, 2), None, None, None, None, 0, ""),
            ("leader", "Leader", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("leader_recovery_state", "LeaderRecoveryState", "int8", 0, (0, 2), None, (0, 32767), 0, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("partition_epoch", "PartitionEpoch", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("directories", "Directories", "uuid", 1, (1, 2), None, None, None, None, 0, ""),
            ("eligible_leader_replicas", "EligibleLeaderReplicas", "int32", 1, (2, 2), (2, 32767), (2, 32767), 1, None, 0, None),
            ("last_known_elr", "LastKnownElr", "int32", 1, (2, 2), (2, 32767), (2, 32767), 2, None, 0, None),
        )),
    ),
)
