"""JoinGroupResponse: a response of key 11, versions 0-9, flexible 6+.

Generated from schemas/JoinGroupResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class JoinGroupResponseMember(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class JoinGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "JoinGroupResponse", 11, "response",
    (0, 9), (6, 32767),
    (
        ("JoinGroupResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (2, 9), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 9), None, None, None, None, 0, 0),
            ("generation_id", "GenerationId", "int32", 0, (0, 9), None, None, None, None, 0, -1),
            ("protocol_type", "ProtocolType", "string", 0, (7, 9), (7, 32767), None, None, None, 1, None),
            ("protocol_name", "ProtocolName", "string", 0, (0, 9), (7, 32767), None, None, None, 0, ""),
            ("leader", "Leader", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("skip_assignment", "SkipAssignment", "bool", 0, (9, 9), None, None, None, None, 0, 0),
            ("member_id", "MemberId", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("members", "Members", "JoinGroupResponseMember", 1, (0, 9), None, None, None, None, 0, ""),
        )),
        ("JoinGroupResponseMember", (
            ("member_id", "MemberId", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (5, 9), (5, 32767), None, None, None, 1, None),
            ("metadata", "Metadata", "bytes", 0, (0, 9), None, None, None, None, 0, ""),
        )),
    ),
)
