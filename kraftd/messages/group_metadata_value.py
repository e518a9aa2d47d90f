"""GroupMetadataValue: the value of a group coordinator's record of key 2, versions 0-4, flexible 4+.

Generated from schemas/GroupMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class MemberMetadata(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class GroupMetadataValue(Message):
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "GroupMetadataValue", 2, "coordinator-value",
    (0, 4), (4, 32767),
    (
        ("GroupMetadataValue", (
            ("protocol_type", "protocolType", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("generation", "generation", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("protocol", "protocol", "string", 0, (0, 4), (0, 32767), None, None, None, 0, ""),
            ("leader", "leader", "string", 0, (0, 4), (0, 32767), None, None, None, 0, ""),
            ("current_state_timestamp", "currentStateTimestamp", "int64", 0, (2, 4), None, None, None, None, 1, -1),
            ("members", "members", "MemberMetadata", 1, (0, 4), None, None, None, None, 0, ""),
        )),
        ("MemberMetadata", (
            ("member_id", "memberId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("group_instance_id", "groupInstanceId", "string", 0, (3, 4), (3, 32767), None, None, None, 1, None),
            ("client_id", "clientId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("client_host", "clientHost", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("rebalance_timeout", "rebalanceTimeout", "int32", 0, (1, 4), None, None, None, None, 1, -1),
            ("session_timeout", "sessionTimeout", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("subscription", "subscription", "bytes", 0, (0, 4), None, None, None, None, 0, ""),
            ("assignment", "assignment", "bytes", 0, (0, 4), None, None, None, None, 0, ""),
        )),
    ),
)
