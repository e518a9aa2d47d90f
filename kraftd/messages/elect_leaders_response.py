"""ElectLeadersResponse: a response of key 43, versions 0-2, flexible 2+.

Generated from schemas/ElectLeadersResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionResult(Message):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReplicaElectionResult(Message):
    topic: str = ""
    partition_result: list[PartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ElectLeadersResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ElectLeadersResponse", 43, "response",
    (0, 2), (2, 32767),
    (
        ("ElectLeadersResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("replica_election_results", "ReplicaElectionResults", "ReplicaElectionResult", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("ReplicaElectionResult", (
            ("topic", "Topic", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partition_result", "PartitionResult", "PartitionResult", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionResult", (
            ("partition_id", "PartitionId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 2), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
