"""AlterPartitionRequest: a request of key 56, versions 2-3, flexible 0+.

Generated from schemas/AlterPartitionRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerState(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: tuple[int, ...] = ()
    new_isr_with_epochs: list[BrokerState] = []
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterPartitionRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterPartitionRequest", 56, "request",
    (2, 3), (0, 32767),
    (
        ("AlterPartitionRequest", (
            ("broker_id", "BrokerId", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (2, 3), None, None, None, None, 0, -1),
            ("topics", "Topics", "TopicData", 1, (2, 3), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic_id", "TopicId", "uuid", 0, (2, 3), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "PartitionData", 1, (2, 3), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (2, 3), None, None, None, None, 0, 0),
            ("new_isr", "NewIsr", "int32", 1, (2, 2), None, None, None, None, 0, ""),
            ("new_isr_with_epochs", "NewIsrWithEpochs", "BrokerState", 1, (3, 3), None, None, None, None, 0, ""),
            ("leader_recovery_state", "LeaderRecoveryState", "int8", 0, (2, 3), None, None, None, None, 0, 0),
            ("partition_epoch", "PartitionEpoch", "int32", 0, (2, 3), None, None, None, None, 0, 0),
        )),
        ("BrokerState", (
            ("broker_id", "BrokerId", "int32", 0, (3, 3), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (3, 3), None, None, None, None, 0, -1),
        )),
    ),
)
