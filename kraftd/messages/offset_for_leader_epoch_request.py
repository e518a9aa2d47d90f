"""OffsetForLeaderEpochRequest: a request of key 23, versions 2-4, flexible 4+.

Generated from schemas/OffsetForLeaderEpochRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetForLeaderPartition(Message):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetForLeaderTopic(Message):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetForLeaderEpochRequest(Message):
    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetForLeaderEpochRequest", 23, "request",
    (2, 4), (4, 32767),
    (
        ("OffsetForLeaderEpochRequest", (
            ("replica_id", "ReplicaId", "int32", 0, (3, 4), None, None, None, None, 1, -2),
            ("topics", "Topics", "OffsetForLeaderTopic", 1, (2, 4), None, None, None, None, 0, ""),
        )),
        ("OffsetForLeaderTopic", (
            ("topic", "Topic", "string", 0, (2, 4), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "OffsetForLeaderPartition", 1, (2, 4), None, None, None, None, 0, ""),
        )),
        ("OffsetForLeaderPartition", (
            ("partition", "Partition", "int32", 0, (2, 4), None, None, None, None, 0, 0),
            ("current_leader_epoch", "CurrentLeaderEpoch", "int32", 0, (2, 4), None, None, None, None, 1, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (2, 4), None, None, None, None, 0, 0),
        )),
    ),
)
