"""MetadataResponse: a response of key 3, versions 0-13, flexible 9+.

Generated from schemas/MetadataResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class MetadataResponseBroker(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class MetadataResponsePartition(Message):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class MetadataResponseTopic(Message):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class MetadataResponse(Message):
    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "MetadataResponse", 3, "response",
    (0, 13), (9, 32767),
    (
        ("MetadataResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (3, 13), None, None, None, None, 1, 0),
            ("brokers", "Brokers", "MetadataResponseBroker", 1, (0, 13), None, None, None, None, 0, ""),
            ("cluster_id", "ClusterId", "string", 0, (2, 13), (2, 32767), None, None, None, 1, None),
            ("controller_id", "ControllerId", "int32", 0, (1, 13), None, None, None, None, 1, -1),
            ("topics", "Topics", "MetadataResponseTopic", 1, (0, 13), None, None, None, None, 0, ""),
            ("cluster_authorized_operations", "ClusterAuthorizedOperations", "int32", 0, (8, 10), None, None, None, None, 0, -2147483648),
            ("error_code", "ErrorCode", "int16", 0, (13, 13), None, None, None, None, 1, 0),
        )),
        ("MetadataResponseBroker", (
            ("node_id", "NodeId", "int32", 0, (0, 13), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (0, 13), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (0, 13), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (1, 13), (1, 32767), None, None, None, 1, None),
        )),
        ("MetadataResponseTopic", (
            ("error_code", "ErrorCode", "int16", 0, (0, 13), None, None, None, None, 0, 0),
            ("name", "Name", "string", 0, (0, 13), (12, 32767), None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (10, 13), None, None, None, None, 1, ""),
            ("is_internal", "IsInternal", "bool", 0, (1, 13), None, None, None, None, 1, 0),
            ("partitions", "Partitions", "MetadataResponsePartition", 1, (0, 13), None, None, None, None, 0, ""),
            ("topic_authorized_operations", "TopicAuthorizedOperations", "int32", 0, (8, 13), None, None, None, None, 0, -2147483648),
        )),
        ("MetadataResponsePartition", (
            ("error_code", "ErrorCode", "int16", 0, (0, 13), None, None, None, None, 0, 0),
            ("partition_index", "PartitionIndex", "int32", 0, (0, 13), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (0, 13), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (7, 13), None, None, None, None, 1, -1),
            ("replica_nodes", "ReplicaNodes", "int32", 1, (0, 13), None, None, None, None, 0, ""),
            ("isr_nodes", "IsrNodes", "int32", 1, (0, 13), None, None, None, None, 0, ""),
            ("offline_replicas", "OfflineReplicas", "int32", 1, (5, 13), None, None, None, None, 1, ""),
        )),
    ),
)
