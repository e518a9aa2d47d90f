"""BeginQuorumEpochRequest: a request of key 53, versions 0-1, flexible 1+.

Generated from schemas/BeginQuorumEpochRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    voter_directory_id: bytes = bytes(16)
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaderEndpoint(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class BeginQuorumEpochRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[TopicData] = []
    leader_endpoints: list[LeaderEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BeginQuorumEpochRequest", 53, "request",
    (0, 1), (1, 32767),
    (
        ("BeginQuorumEpochRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("voter_id", "VoterId", "int32", 0, (1, 1), None, None, None, None, 1, -1),
            ("topics", "Topics", "TopicData", 1, (0, 1), None, None, None, None, 0, ""),
            ("leader_endpoints", "LeaderEndpoints", "LeaderEndpoint", 1, (1, 1), None, None, None, None, 1, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (1, 1), None, None, None, None, 1, ""),
            ("leader_id", "LeaderId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("LeaderEndpoint", (
            ("name", "Name", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (1, 1), None, None, None, None, 0, 0),
        )),
    ),
)
