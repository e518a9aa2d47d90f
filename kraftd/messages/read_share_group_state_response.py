"""ReadShareGroupStateResponse: a response of key 84, versions 0, flexible 0+.

Generated from schemas/ReadShareGroupStateResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StateBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ReadShareGroupStateResponse", 84, "response",
    (0, 0), (0, 32767),
    (
        ("ReadShareGroupStateResponse", (
            ("results", "Results", "ReadStateResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ReadStateResult", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionResult", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionResult", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("state_epoch", "StateEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("state_batches", "StateBatches", "StateBatch", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("StateBatch", (
            ("first_offset", "FirstOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("delivery_state", "DeliveryState", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("delivery_count", "DeliveryCount", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
