"""AlterPartitionReassignmentsResponse: a response of key 45, versions 0-1, flexible 0+.

Generated from schemas/AlterPartitionReassignmentsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ReassignablePartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReassignableTopicResponse(Message):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterPartitionReassignmentsResponse", 45, "response",
    (0, 1), (0, 32767),
    (
        ("AlterPartitionReassignmentsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("allow_replication_factor_change", "AllowReplicationFactorChange", "bool", 0, (1, 1), None, None, None, None, 1, 1),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("responses", "Responses", "ReassignableTopicResponse", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReassignableTopicResponse", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "ReassignablePartitionResponse", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReassignablePartitionResponse", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
