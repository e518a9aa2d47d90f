"""DescribeQuorumResponse: a response of key 55, versions 0-2, flexible 0+.

Generated from schemas/DescribeQuorumResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ReplicaState(Message):
    replica_id: int = 0
    replica_directory_id: bytes = bytes(16)
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Node(Message):
    node_id: int = 0
    listeners: list[Listener] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeQuorumResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    topics: list[TopicData] = []
    nodes: list[Node] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeQuorumResponse", 55, "response",
    (0, 2), (0, 32767),
    (
        ("DescribeQuorumResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (2, 2), (2, 32767), None, None, None, 1, ""),
            ("topics", "Topics", "TopicData", 1, (0, 2), None, None, None, None, 0, ""),
            ("nodes", "Nodes", "Node", 1, (2, 2), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (2, 2), (2, 32767), None, None, None, 1, ""),
            ("leader_id", "LeaderId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("high_watermark", "HighWatermark", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("current_voters", "CurrentVoters", "ReplicaState", 1, (0, 2), None, None, None, None, 0, ""),
            ("observers", "Observers", "ReplicaState", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("ReplicaState", (
            ("replica_id", "ReplicaId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("replica_directory_id", "ReplicaDirectoryId", "uuid", 0, (2, 2), None, None, None, None, 0, ""),
            ("log_end_offset", "LogEndOffset", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("last_fetch_timestamp", "LastFetchTimestamp", "int64", 0, (1, 2), None, None, None, None, 1, -1),
            ("last_caught_up_timestamp", "LastCaughtUpTimestamp", "int64", 0, (1, 2), None, None, None, None, 1, -1),
        )),
        ("Node", (
            ("node_id", "NodeId", "int32", 0, (2, 2), None, None, None, None, 0, 0),
            ("listeners", "Listeners", "Listener", 1, (2, 2), None, None, None, None, 0, ""),
        )),
        ("Listener", (
            ("name", "Name", "string", 0, (2, 2), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (2, 2), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (2, 2), None, None, None, None, 0, 0),
        )),
    ),
)
