"""ListPartitionReassignmentsRequest: a request of key 46, versions 0, flexible 0+.

Generated from schemas/ListPartitionReassignmentsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListPartitionReassignmentsTopics(Message):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListPartitionReassignmentsRequest", 46, "request",
    (0, 0), (0, 32767),
    (
        ("ListPartitionReassignmentsRequest", (
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, 60000),
            ("topics", "Topics", "ListPartitionReassignmentsTopics", 1, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
        ("ListPartitionReassignmentsTopics", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition_indexes", "PartitionIndexes", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
