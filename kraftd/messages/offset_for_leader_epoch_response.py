"""OffsetForLeaderEpochResponse: a response of key 23, versions 2-4, flexible 4+.

Generated from schemas/OffsetForLeaderEpochResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EpochEndOffset(Message):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetForLeaderTopicResult(Message):
    topic: str = ""
    partitions: list[EpochEndOffset] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetForLeaderEpochResponse", 23, "response",
    (2, 4), (4, 32767),
    (
        ("OffsetForLeaderEpochResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (2, 4), None, None, None, None, 1, 0),
            ("topics", "Topics", "OffsetForLeaderTopicResult", 1, (2, 4), None, None, None, None, 0, ""),
        )),
        ("OffsetForLeaderTopicResult", (
            ("topic", "Topic", "string", 0, (2, 4), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "EpochEndOffset", 1, (2, 4), None, None, None, None, 0, ""),
        )),
        ("EpochEndOffset", (
            ("error_code", "ErrorCode", "int16", 0, (2, 4), None, None, None, None, 0, 0),
            ("partition", "Partition", "int32", 0, (2, 4), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (2, 4), None, None, None, None, 1, -1),
            ("end_offset", "EndOffset", "int64", 0, (2, 4), None, None, None, None, 0, -1),
        )),
    ),
)
