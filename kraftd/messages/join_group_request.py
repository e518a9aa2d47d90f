"""JoinGroupRequest: a request of key 11, versions 0-9, flexible 6+.

Generated from schemas/JoinGroupRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class JoinGroupRequestProtocol(Message):
    name: str = ""
    metadata: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class JoinGroupRequest(Message):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "JoinGroupRequest", 11, "request",
    (0, 9), (6, 32767),
    (
        ("JoinGroupRequest", (
            ("group_id", "GroupId", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("session_timeout_ms", "SessionTimeoutMs", "int32", 0, (0, 9), None, None, None, None, 0, 0),
            ("rebalance_timeout_ms", "RebalanceTimeoutMs", "int32", 0, (1, 9), None, None, None, None, 1, -1),
            ("member_id", "MemberId", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (5, 9), (5, 32767), None, None, None, 0, None),
            ("protocol_type", "ProtocolType", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("protocols", "Protocols", "JoinGroupRequestProtocol", 1, (0, 9), None, None, None, None, 0, ""),
            ("reason", "Reason", "string", 0, (8, 9), (8, 32767), None, None, None, 1, None),
        )),
        ("JoinGroupRequestProtocol", (
            ("name", "Name", "string", 0, (0, 9), None, None, None, None, 0, ""),
            ("metadata", "Metadata", "bytes", 0, (0, 9), None, None, None, None, 0, ""),
        )),
    ),
)
