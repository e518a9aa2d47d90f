"""AlterPartitionResponse: a response of key 56, versions 2-3, flexible 0+.

Generated from schemas/AlterPartitionResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterPartitionResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterPartitionResponse", 56, "response",
    (2, 3), (0, 32767),
    (
        ("AlterPartitionResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (2, 3), None, None, None, None, 0, 0),
            ("topics", "Topics", "TopicData", 1, (2, 3), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_id", "TopicId", "uuid", 0, (2, 3), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "PartitionData", 1, (2, 3), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (2, 3), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("isr", "Isr", "int32", 1, (2, 3), None, None, None, None, 0, ""),
            ("leader_recovery_state", "LeaderRecoveryState", "int8", 0, (2, 3), None, None, None, None, 1, 0),
            ("partition_epoch", "PartitionEpoch", "int32", 0, (2, 3), None, None, None, None, 0, 0),
        )),
    ),
)
