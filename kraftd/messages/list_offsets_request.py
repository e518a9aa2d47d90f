"""ListOffsetsRequest: a request of key 2, versions 1-11, flexible 6+.

Generated from schemas/ListOffsetsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListOffsetsPartition(Message):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListOffsetsTopic(Message):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListOffsetsRequest(Message):
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListOffsetsRequest", 2, "request",
    (1, 11), (6, 32767),
    (
        ("ListOffsetsRequest", (
            ("replica_id", "ReplicaId", "int32", 0, (1, 11), None, None, None, None, 0, 0),
            ("isolation_level", "IsolationLevel", "int8", 0, (2, 11), None, None, None, None, 0, 0),
            ("topics", "Topics", "ListOffsetsTopic", 1, (1, 11), None, None, None, None, 0, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (10, 11), None, None, None, None, 1, 0),
        )),
        ("ListOffsetsTopic", (
            ("name", "Name", "string", 0, (1, 11), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "ListOffsetsPartition", 1, (1, 11), None, None, None, None, 0, ""),
        )),
        ("ListOffsetsPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 11), None, None, None, None, 0, 0),
            ("current_leader_epoch", "CurrentLeaderEpoch", "int32", 0, (4, 11), None, None, None, None, 1, -1),
            ("timestamp", "Timestamp", "int64", 0, (1, 11), None, None, None, None, 0, 0),
        )),
    ),
)
