"""DescribeProducersResponse: a response of key 61, versions 0, flexible 0+.

Generated from schemas/DescribeProducersResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ProducerState(Message):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicResponse(Message):
    name: str = ""
    partitions: list[PartitionResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeProducersResponse(Message):
    throttle_time_ms: int = 0
    topics: list[TopicResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeProducersResponse", 61, "response",
    (0, 0), (0, 32767),
    (
        ("DescribeProducersResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("topics", "Topics", "TopicResponse", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicResponse", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionResponse", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionResponse", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("active_producers", "ActiveProducers", "ProducerState", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ProducerState", (
            ("producer_id", "ProducerId", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("last_sequence", "LastSequence", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("last_timestamp", "LastTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, -1),
            ("coordinator_epoch", "CoordinatorEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("current_txn_start_offset", "CurrentTxnStartOffset", "int64", 0, (0, 0), None, None, None, None, 0, -1),
        )),
    ),
)
