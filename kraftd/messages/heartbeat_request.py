"""HeartbeatRequest: a request of key 12, versions 0-4, flexible 4+.

Generated from schemas/HeartbeatRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class HeartbeatRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "HeartbeatRequest", 12, "request",
    (0, 4), (4, 32767),
    (
        ("HeartbeatRequest", (
            ("group_id", "GroupId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("generation_id", "GenerationId", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("member_id", "MemberId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (3, 4), (3, 32767), None, None, None, 0, None),
        )),
    ),
)
