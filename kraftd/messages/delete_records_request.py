"""DeleteRecordsRequest: a request of key 21, versions 0-2, flexible 2+.

Generated from schemas/DeleteRecordsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteRecordsPartition(Message):
    partition_index: int = 0
    offset: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteRecordsTopic(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteRecordsRequest", 21, "request",
    (0, 2), (2, 32767),
    (
        ("DeleteRecordsRequest", (
            ("topics", "Topics", "DeleteRecordsTopic", 1, (0, 2), None, None, None, None, 0, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
        )),
        ("DeleteRecordsTopic", (
            ("name", "Name", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "DeleteRecordsPartition", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("DeleteRecordsPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("offset", "Offset", "int64", 0, (0, 2), None, None, None, None, 0, 0),
        )),
    ),
)
