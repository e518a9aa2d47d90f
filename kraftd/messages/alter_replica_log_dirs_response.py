"""AlterReplicaLogDirsResponse: a response of key 34, versions 1-2, flexible 2+.

Generated from schemas/AlterReplicaLogDirsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterReplicaLogDirsResponse", 34, "response",
    (1, 2), (2, 32767),
    (
        ("AlterReplicaLogDirsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("results", "Results", "AlterReplicaLogDirTopicResult", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AlterReplicaLogDirTopicResult", (
            ("topic_name", "TopicName", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "AlterReplicaLogDirPartitionResult", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AlterReplicaLogDirPartitionResult", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
