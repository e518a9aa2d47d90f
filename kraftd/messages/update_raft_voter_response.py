"""UpdateRaftVoterResponse: a response of key 82, versions 0, flexible 0+.

Generated from schemas/UpdateRaftVoterResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class CurrentLeader(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = field(default_factory=CurrentLeader)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UpdateRaftVoterResponse", 82, "response",
    (0, 0), (0, 32767),
    (
        ("UpdateRaftVoterResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("current_leader", "CurrentLeader", "CurrentLeader", 0, (0, 0), None, (0, 32767), 0, None, 0, ""),
        )),
        ("CurrentLeader", (
            ("leader_id", "LeaderId", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
