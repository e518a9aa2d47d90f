"""EndQuorumEpochRequest: a request of key 54, versions 0-1, flexible 1+.

Generated from schemas/EndQuorumEpochRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ReplicaInfo(Message):
    candidate_id: int = 0
    candidate_directory_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_successors: tuple[int, ...] = ()
    preferred_candidates: list[ReplicaInfo] = []
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


class EndQuorumEpochRequest(Message):
    cluster_id: str | None = None
    topics: list[TopicData] = []
    leader_endpoints: list[LeaderEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EndQuorumEpochRequest", 54, "request",
    (0, 1), (1, 32767),
    (
        ("EndQuorumEpochRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("topics", "Topics", "TopicData", 1, (0, 1), None, None, None, None, 0, ""),
            ("leader_endpoints", "LeaderEndpoints", "LeaderEndpoint", 1, (1, 1), None, None, None, None, 1, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("preferred_successors", "PreferredSuccessors", "int32", 1, (0, 0), None, None, None, None, 1, ""),
            ("preferred_candidates", "PreferredCandidates", "ReplicaInfo", 1, (1, 1), None, None, None, None, 1, ""),
        )),
        ("ReplicaInfo", (
            ("candidate_id", "CandidateId", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("candidate_directory_id", "CandidateDirectoryId", "uuid", 0, (1, 1), None, None, None, None, 0, ""),
        )),
        ("LeaderEndpoint", (
            ("name", "Name", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (1, 1), None, None, None, None, 0, 0),
        )),
    ),
)
