"""FetchSnapshotRequest: a request of key 59, versions 0-1, flexible 0+.

Generated from schemas/FetchSnapshotRequest.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class SnapshotId(Message):
    end_offset: int = 0
    epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionSnapshot(Message):
    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)
    position: int = 0
    replica_directory_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicSnapshot(Message):
    name: str = ""
    partitions: list[PartitionSnapshot] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchSnapshotRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[TopicSnapshot] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FetchSnapshotRequest", 59, "request",
    (0, 1), (0, 32767),
    (
        ("FetchSnapshotRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 1), (0, 32767), (0, 32767), 0, None, 0, None),
            ("replica_id", "ReplicaId", "int32", 0, (0, 1), None, None, None, None, 0, -1),
            ("max_bytes", "MaxBytes", "int32", 0, (0, 1), None, None, None, None, 0, 2147483647),
            ("topics", "Topics", "TopicSnapshot", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("TopicSnapshot", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionSnapshot", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionSnapshot", (
            ("partition", "Partition", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("current_leader_epoch", "CurrentLeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("snapshot_id", "SnapshotId", "SnapshotId", 0, (0, 1), None, None, None, None, 0, ""),
            ("position", "Position", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("replica_directory_id", "ReplicaDirectoryId", "uuid", 0, (1, 1), None, (1, 32767), 0, None, 1, ""),
        )),
        ("SnapshotId", (
            ("end_offset", "EndOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("epoch", "Epoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
