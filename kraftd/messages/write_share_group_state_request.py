"""WriteShareGroupStateRequest: a request of key 85, versions 0-1, flexible 0+.

Generated from schemas/WriteShareGroupStateRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StateBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[WriteStateData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "WriteShareGroupStateRequest", 85, "request",
    (0, 1), (0, 32767),
    (
        ("WriteShareGroupStateRequest", (
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("topics", "Topics", "WriteStateData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("WriteStateData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition", "Partition", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("state_epoch", "StateEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("delivery_complete_count", "DeliveryCompleteCount", "int32", 0, (1, 1), None, None, None, None, 1, -1),
            ("state_batches", "StateBatches", "StateBatch", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("StateBatch", (
            ("first_offset", "FirstOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("delivery_state", "DeliveryState", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("delivery_count", "DeliveryCount", "int16", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
