"""TxnOffsetCommitResponse: a response of key 28, versions 0-5, flexible 3+.

Generated from schemas/TxnOffsetCommitResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TxnOffsetCommitResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TxnOffsetCommitResponseTopic(Message):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "TxnOffsetCommitResponse", 28, "response",
    (0, 5), (3, 32767),
    (
        ("TxnOffsetCommitResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("topics", "Topics", "TxnOffsetCommitResponseTopic", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("TxnOffsetCommitResponseTopic", (
            ("name", "Name", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "TxnOffsetCommitResponsePartition", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("TxnOffsetCommitResponsePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
        )),
    ),
)
