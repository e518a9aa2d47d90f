"""ListPartitionReassignmentsResponse: a response of key 46, versions 0, flexible 0+.

Generated from schemas/ListPartitionReassignmentsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OngoingPartitionReassignment(Message):
    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OngoingTopicReassignment(Message):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListPartitionReassignmentsResponse", 46, "response",
    (0, 0), (0, 32767),
    (
        ("ListPartitionReassignmentsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("topics", "Topics", "OngoingTopicReassignment", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OngoingTopicReassignment", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "OngoingPartitionReassignment", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("OngoingPartitionReassignment", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("replicas", "Replicas", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("adding_replicas", "AddingReplicas", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("removing_replicas", "RemovingReplicas", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
