"""VoteRequest: a request of key 52, versions 0-2, flexible 0+.

Generated from schemas/VoteRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: bytes = bytes(16)
    voter_directory_id: bytes = bytes(16)
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class VoteRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "VoteRequest", 52, "request",
    (0, 2), (0, 32767),
    (
        ("VoteRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 2), (0, 32767), None, None, None, 0, None),
            ("voter_id", "VoterId", "int32", 0, (1, 2), None, None, None, None, 1, -1),
            ("topics", "Topics", "TopicData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_name", "TopicName", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("replica_epoch", "ReplicaEpoch", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("replica_id", "ReplicaId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("replica_directory_id", "ReplicaDirectoryId", "uuid", 0, (1, 2), None, None, None, None, 1, ""),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (1, 2), None, None, None, None, 1, ""),
            ("last_offset_epoch", "LastOffsetEpoch", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("pre_vote", "PreVote", "bool", 0, (2, 2), None, None, None, None, 0, 0),
        )),
    ),
)
