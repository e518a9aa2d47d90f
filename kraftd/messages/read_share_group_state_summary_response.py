"""ReadShareGroupStateSummaryResponse: a response of key 87, versions 0-1, flexible 0+.

Generated from schemas/ReadShareGroupStateSummaryResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadStateSummaryResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ReadShareGroupStateSummaryResponse", 87, "response",
    (0, 1), (0, 32767),
    (
        ("ReadShareGroupStateSummaryResponse", (
            ("results", "Results", "ReadStateSummaryResult", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReadStateSummaryResult", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionResult", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionResult", (
            ("partition", "Partition", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("state_epoch", "StateEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("delivery_complete_count", "DeliveryCompleteCount", "int32", 0, (1, 1), None, None, None, None, 1, -1),
        )),
    ),
)
