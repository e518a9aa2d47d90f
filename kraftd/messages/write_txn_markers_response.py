"""WriteTxnMarkersResponse: a response of key 27, versions 1-2, flexible 1+.

Generated from schemas/WriteTxnMarkersResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class WritableTxnMarkerPartitionResult(Message):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WritableTxnMarkerTopicResult(Message):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WritableTxnMarkerResult(Message):
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "WriteTxnMarkersResponse", 27, "response",
    (1, 2), (1, 32767),
    (
        ("WriteTxnMarkersResponse", (
            ("markers", "Markers", "WritableTxnMarkerResult", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("WritableTxnMarkerResult", (
            ("producer_id", "ProducerId", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "WritableTxnMarkerTopicResult", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("WritableTxnMarkerTopicResult", (
            ("name", "Name", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "WritableTxnMarkerPartitionResult", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("WritableTxnMarkerPartitionResult", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
        )),
    ),
)
