"""DescribeTopicPartitionsResponse: a response of key 75, versions 0, flexible 0+.

Generated from schemas/DescribeTopicPartitionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Cursor(Message):
    topic_name: str = ""
    partition_index: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeTopicPartitionsResponse", 75, "response",
    (0, 0), (0, 32767),
    (
        ("DescribeTopicPartitionsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 1, 0),
            ("topics", "Topics", "DescribeTopicPartitionsResponseTopic", 1, (0, 0), None, None, None, None, 0, ""),
            ("next_cursor", "NextCursor", "Cursor", 0, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
        ("DescribeTopicPartitionsResponseTopic", (
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("name", "Name", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 1, ""),
            ("is_internal", "IsInternal", "bool", 0, (0, 0), None, None, None, None, 1, 0),
            ("partitions", "Partitions", "DescribeTopicPartitionsResponsePartition", 1, (0, 0), None, None, None, None, 0, ""),
            ("topic_authorized_operations", "TopicAuthorizedOperations", "int32", 0, (0, 0), None, None, None, None, 0, -2147483648),
        )),
        ("DescribeTopicPartitionsResponsePartition", (
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 0), None, None, None, None, 1, -1),
            ("replica_nodes", "ReplicaNodes", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("isr_nodes", "IsrNodes", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("eligible_leader_replicas", "EligibleLeaderReplicas", "int32", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("last_known_elr", "LastKnownElr", "int32", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("offline_replicas", "OfflineReplicas", "int32", 1, (0, 0), None, None, None, None, 1, ""),
        )),
        ("Cursor", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
