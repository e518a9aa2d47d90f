"""CreatePartitionsRequest: a request of key 37, versions 0-3, flexible 2+.

Generated from schemas/CreatePartitionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreatePartitionsAssignment(Message):
    broker_ids: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatePartitionsTopic(Message):
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int = 0
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreatePartitionsRequest", 37, "request",
    (0, 3), (2, 32767),
    (
        ("CreatePartitionsRequest", (
            ("topics", "Topics", "CreatePartitionsTopic", 1, (0, 3), None, None, None, None, 0, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("validate_only", "ValidateOnly", "bool", 0, (0, 3), None, None, None, None, 0, 0),
        )),
        ("CreatePartitionsTopic", (
            ("name", "Name", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("count", "Count", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("assignments", "Assignments", "CreatePartitionsAssignment", 1, (0, 3), (0, 32767), None, None, None, 0, ""),
        )),
        ("CreatePartitionsAssignment", (
            ("broker_ids", "BrokerIds", "int32", 1, (0, 3), None, None, None, None, 0, ""),
        )),
    ),
)
