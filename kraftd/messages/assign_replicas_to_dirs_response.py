"""AssignReplicasToDirsResponse: a response of key 73, versions 0, flexible 0+.

Generated from schemas/AssignReplicasToDirsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DirectoryData(Message):
    id: bytes = bytes(16)
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[DirectoryData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AssignReplicasToDirsResponse", 73, "response",
    (0, 0), (0, 32767),
    (
        ("AssignReplicasToDirsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
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
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
