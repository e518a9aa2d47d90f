"""FetchRequest: a request of key 1, versions 4-18, flexible 12+.

Generated from schemas/FetchRequest.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class ReplicaState(Message):
    replica_id: int = -1
    replica_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchPartition(Message):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = bytes(16)
    high_watermark: int = 9223372036854775807
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchTopic(Message):
    topic: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[FetchPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ForgottenTopic(Message):
    topic: str = ""
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = field(default_factory=ReplicaState)
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    rack_id: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FetchRequest", 1, "request",
    (4, 18), (12, 32767),
    (
        ("FetchRequest", (
            ("cluster_id", "ClusterId", "string", 0, (12, 18), (12, 32767), (12, 32767), 0, None, 1, None),
            ("replica_id", "ReplicaId", "int32", 0, (4, 14), None, None, None, None, 0, -1),
            ("replica_state", "ReplicaState", "ReplicaState", 0, (15, 18), None, (15, 32767), 1, None, 0, ""),
            ("max_wait_ms", "MaxWaitMs", "int32", 0, (4, 18), None, None, None, None, 0, 0),
            ("min_bytes", "MinBytes", "int32", 0, (4, 18), None, None, None, None, 0, 0),
            ("max_bytes", "MaxBytes", "int32", 0, (4, 18), None, None, None, None, 1, 2147483647),
            ("isolation_level", "IsolationLevel", "int8", 0, (4, 18), None, None, None, None, 1, 0),
            ("session_id", "SessionId", "int32", 0, (7, 18), None, None, None, None, 1, 0),
            ("session_epoch", "SessionEpoch", "int32", 0, (7, 18), None, None, None, None, 1, -1),
            ("topics", "Topics", "FetchTopic", 1, (4, 18), None, None, None, None, 0, ""),
            ("forgotten_topics_data", "ForgottenTopicsData", "ForgottenTopic", 1, (7, 18), None, None, None, None, 0, ""),
            ("rack_id", "RackId", "string", 0, (11, 18), None, None, None, None, 1, ""),
        )),
        ("ReplicaState", (
            ("replica_id", "ReplicaId", "int32", 0, (15, 18), None, None, None, None, 0, -1),
            ("replica_epoch", "ReplicaEpoch", "int64", 0, (15, 18), None, None, None, None, 0, -1),
        )),
        ("FetchTopic", (
            ("topic", "Topic", "string", 0, (4, 12), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (13, 18), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "FetchPartition", 1, (4, 18), None, None, None, None, 0, ""),
        )),
        ("FetchPartition", (
            ("partition", "Partition", "int32", 0, (4, 18), None, None, None, None, 0, 0),
            ("current_leader_epoch", "CurrentLeaderEpoch", "int32", 0, (9, 18), None, None, None, None, 1, -1),
            ("fetch_offset", "FetchOffset", "int64", 0, (4, 18), None, None, None, None, 0, 0),
            ("last_fetched_epoch", "LastFetchedEpoch", "int32", 0, (12, 18), None, None, None, None, 0, -1),
            ("log_start_offset", "LogStartOffset", "int64", 0, (5, 18), None, None, None, None, 1, -1),
            ("partition_max_bytes", "PartitionMaxBytes", "int32", 0, (4, 18), None, None, None, None, 0, 0),
            ("replica_directory_id", "ReplicaDirectoryId", "uuid", 0, (17, 18), None, (17, 32767), 0, None, 1, ""),
            ("high_watermark", "HighWatermark", "int64", 0, (18, 18), None, (18, 32767), 1, None, 1, 9223372036854775807),
        )),
        ("ForgottenTopic", (
            ("topic", "Topic", "string", 0, (7, 12), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (13, 18), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "int32", 1, (7, 18), None, None, None, None, 0, ""),
        )),
    ),
)
