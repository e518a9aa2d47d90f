"""FetchResponse: a response of key 1, versions 4-18, flexible 12+.

Generated from schemas/FetchResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class EpochEndOffset(Message):
    epoch: int = -1
    end_offset: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class SnapshotId(Message):
    end_offset: int = -1
    epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AbortedTransaction(Message):
    producer_id: int = 0
    first_offset: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = field(default_factory=EpochEndOffset)
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: int = -1
    records: bytes | memoryview | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchableTopicResponse(Message):
    topic: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FetchResponse", 1, "response",
    (4, 18), (12, 32767),
    (
        ("FetchResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (4, 18), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (7, 18), None, None, None, None, 1, 0),
            ("session_id", "SessionId", "int32", 0, (7, 18), None, None, None, None, 0, 0),
            ("responses", "Responses", "FetchableTopicResponse", 1, (4, 18), None, None, None, None, 0, ""),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (16, 18), None, (16, 32767), 0, None, 0, ""),
        )),
        ("FetchableTopicResponse", (
            ("topic", "Topic", "string", 0, (4, 12), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (13, 18), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "PartitionData", 1, (4, 18), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (4, 18), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (4, 18), None, None, None, None, 0, 0),
            ("high_watermark", "HighWatermark", "int64", 0, (4, 18), None, None, None, None, 0, 0),
            ("last_stable_offset", "LastStableOffset", "int64", 0, (4, 18), None, None, None, None, 1, -1),
            ("log_start_offset", "LogStartOffset", "int64", 0, (5, 18), None, None, None, None, 1, -1),
            ("diverging_epoch", "DivergingEpoch", "EpochEndOffset", 0, (12, 18), None, (12, 32767), 0, None, 0, ""),
            ("current_leader", "CurrentLeader", "LeaderIdAndEpoch", 0, (12, 18), None, (12, 32767), 1, None, 0, ""),
            ("snapshot_id", "SnapshotId", "SnapshotId", 0, (12, 18), None, (12, 32767), 2, None, 0, ""),
            ("aborted_transactions", "AbortedTransactions", "AbortedTransaction", 1, (4, 18), (4, 32767), None, None, None, 1, ""),
            ("preferred_read_replica", "PreferredReadReplica", "int32", 0, (11, 18), None, None, None, None, 0, -1),
            ("records", "Records", "records", 0, (4, 18), (0, 32767), None, None, None, 0, None),
        )),
        ("EpochEndOffset", (
            ("epoch", "Epoch", "int32", 0, (12, 18), None, None, None, None, 0, -1),
            ("end_offset", "EndOffset", "int64", 0, (12, 18), None, None, None, None, 0, -1),
        )),
        ("LeaderIdAndEpoch", (
            ("leader_id", "LeaderId", "int32", 0, (12, 18), None, None, None, None, 0, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (12, 18), None, None, None, None, 0, -1),
        )),
        ("SnapshotId", (
            ("end_offset", "EndOffset", "int64", 0, (12, 18), None, None, None, None, 0, -1),
            ("epoch", "Epoch", "int32", 0, (12, 18), None, None, None, None, 0, -1),
        )),
        ("AbortedTransaction", (
            ("producer_id", "ProducerId", "int64", 0, (4, 18), None, None, None, None, 0, 0),
            ("first_offset", "FirstOffset", "int64", 0, (4, 18), None, None, None, None, 0, 0),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (16, 18), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (16, 18), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (16, 18), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (16, 18), (16, 32767), None, None, None, 0, None),
        )),
    ),
)
