"""FetchSnapshotResponse: a response of key 59, versions 0-1, flexible 0+.

Generated from schemas/FetchSnapshotResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class SnapshotId(Message):
    end_offset: int = 0
    epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionSnapshot(Message):
    index: int = 0
    error_code: int = 0
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    size: int = 0
    position: int = 0
    unaligned_records: bytes | memoryview | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicSnapshot(Message):
    name: str = ""
    partitions: list[PartitionSnapshot] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchSnapshotResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[TopicSnapshot] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FetchSnapshotResponse", 59, "response",
    (0, 1), (0, 32767),
    (
        ("FetchSnapshotResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("topics", "Topics", "TopicSnapshot", 1, (0, 1), None, None, None, None, 0, ""),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (1, 1), None, (1, 32767), 0, None, 0, ""),
        )),
        ("TopicSnapshot", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionSnapshot", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionSnapshot", (
            ("index", "Index", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("snapshot_id", "SnapshotId", "SnapshotId", 0, (0, 1), None, None, None, None, 0, ""),
            ("current_leader", "CurrentLeader", "LeaderIdAndEpoch", 0, (0, 1), None, (0, 32767), 0, None, 0, ""),
            ("size", "Size", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("position", "Position", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("unaligned_records", "UnalignedRecords", "records", 0, (0, 1), None, None, None, None, 0, None),
        )),
        ("SnapshotId", (
            ("end_offset", "EndOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("epoch", "Epoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("LeaderIdAndEpoch", (
            ("leader_id", "LeaderId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (1, 1), None, None, None, None, 0, 0),
        )),
    ),
)
