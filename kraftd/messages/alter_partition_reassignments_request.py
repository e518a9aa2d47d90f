"""AlterPartitionReassignmentsRequest: a request of key 45, versions 0-1, flexible 0+.

Generated from schemas/AlterPartitionReassignmentsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ReassignablePartition(Message):
    partition_index: int = 0
    replicas: tuple[int, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReassignableTopic(Message):
    name: str = ""
    partitions: list[ReassignablePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterPartitionReassignmentsRequest", 45, "request",
    (0, 1), (0, 32767),
    (
        ("AlterPartitionReassignmentsRequest", (
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 1), None, None, None, None, 0, 60000),
            ("allow_replication_factor_change", "AllowReplicationFactorChange", "bool", 0, (1, 1), None, None, None, None, 0, 1),
            ("topics", "Topics", "ReassignableTopic", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReassignableTopic", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "ReassignablePartition", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReassignablePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("replicas", "Replicas", "int32", 1, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
