"""VoteResponse: a response of key 52, versions 0-2, flexible 0+.

Generated from schemas/VoteResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    vote_granted: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class VoteResponse(Message):
    error_code: int = 0
    topics: list[TopicData] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "VoteResponse", 52, "response",
    (0, 2), (0, 32767),
    (
        ("VoteResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "TopicData", 1, (0, 2), None, None, None, None, 0, ""),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (1, 2), None, (1, 32767), 0, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("vote_granted", "VoteGranted", "bool", 0, (0, 2), None, None, None, None, 0, 0),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
