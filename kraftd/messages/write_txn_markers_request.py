"""WriteTxnMarkersRequest: a request of key 27, versions 1-2, flexible 1+.

Generated from schemas/WriteTxnMarkersRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class WritableTxnMarkerTopic(Message):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WritableTxnMarker(Message):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int = 0
    transaction_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "WriteTxnMarkersRequest", 27, "request",
    (1, 2), (1, 32767),
    (
        ("WriteTxnMarkersRequest", (
            ("markers", "Markers", "WritableTxnMarker", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("WritableTxnMarker", (
            ("producer_id", "ProducerId", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("transaction_result", "TransactionResult", "bool", 0, (1, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "WritableTxnMarkerTopic", 1, (1, 2), None, None, None, None, 0, ""),
            ("coordinator_epoch", "CoordinatorEpoch", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("transaction_version", "TransactionVersion", "int8", 0, (2, 2), None, None, None, None, 1, 0),
        )),
        ("WritableTxnMarkerTopic", (
            ("name", "Name", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("partition_indexes", "PartitionIndexes", "int32", 1, (1, 2), None, None, None, None, 0, ""),
        )),
    ),
)
