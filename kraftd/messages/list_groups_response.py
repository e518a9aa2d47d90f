"""ListGroupsResponse: a response of key 16, versions 0-5, flexible 3+.

Generated from schemas/ListGroupsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListedGroup(Message):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListGroupsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListGroupsResponse", 16, "response",
    (0, 5), (3, 32767),
    (
        ("ListGroupsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 5), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("groups", "Groups", "ListedGroup", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("ListedGroup", (
            ("group_id", "GroupId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("protocol_type", "ProtocolType", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("group_state", "GroupState", "string", 0, (4, 5), None, None, None, None, 1, ""),
            ("group_type", "GroupType", "string", 0, (5, 5), None, None, None, None, 1, ""),
        )),
    ),
)
