"""SyncGroupRequest: a request of key 14, versions 0-5, flexible 4+.

Generated from schemas/SyncGroupRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class SyncGroupRequestAssignment(Message):
    member_id: str = ""
    assignment: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class SyncGroupRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "SyncGroupRequest", 14, "request",
    (0, 5), (4, 32767),
    (
        ("SyncGroupRequest", (
            ("group_id", "GroupId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("generation_id", "GenerationId", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("member_id", "MemberId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (3, 5), (3, 32767), None, None, None, 0, None),
            ("protocol_type", "ProtocolType", "string", 0, (5, 5), (5, 32767), None, None, None, 1, None),
            ("protocol_name", "ProtocolName", "string", 0, (5, 5), (5, 32767), None, None, None, 1, None),
            ("assignments", "Assignments", "SyncGroupRequestAssignment", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("SyncGroupRequestAssignment", (
            ("member_id", "MemberId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("assignment", "Assignment", "bytes", 0, (0, 5), None, None, None, None, 0, ""),
        )),
    ),
)
