"""AssignReplicasToDirsRequest: a request of key 73, versions 0, flexible 0+.

Generated from schemas/AssignReplicasToDirsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DirectoryData(Message):
    id: bytes = bytes(16)
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AssignReplicasToDirsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[DirectoryData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AssignReplicasToDirsRequest", 73, "request",
    (0, 0), (0, 32767),
    (
        ("AssignReplicasToDirsRequest", (
            ("broker_id", "BrokerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 0), None, None, None, None, 0, -1),
            ("directories", "Directories", "DirectoryData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DirectoryData", (
            ("id", "Id", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "TopicData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
