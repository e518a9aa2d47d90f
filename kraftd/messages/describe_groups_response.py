"""DescribeGroupsResponse: a response of key 15, versions 0-6, flexible 5+.

Generated from schemas/DescribeGroupsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribedGroupMember(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeGroupsResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeGroupsResponse", 15, "response",
    (0, 6), (5, 32767),
    (
        ("DescribeGroupsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 6), None, None, None, None, 1, 0),
            ("groups", "Groups", "DescribedGroup", 1, (0, 6), None, None, None, None, 0, ""),
        )),
        ("DescribedGroup", (
            ("error_code", "ErrorCode", "int16", 0, (0, 6), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (6, 6), (6, 32767), None, None, None, 0, None),
            ("group_id", "GroupId", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("group_state", "GroupState", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("protocol_type", "ProtocolType", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("protocol_data", "ProtocolData", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("members", "Members", "DescribedGroupMember", 1, (0, 6), None, None, None, None, 0, ""),
            ("authorized_operations", "AuthorizedOperations", "int32", 0, (3, 6), None, None, None, None, 0, -2147483648),
        )),
        ("DescribedGroupMember", (
            ("member_id", "MemberId", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (4, 6), (4, 32767), None, None, None, 1, None),
            ("client_id", "ClientId", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 6), None, None, None, None, 0, ""),
            ("member_metadata", "MemberMetadata", "bytes", 0, (0, 6), None, None, None, None, 0, ""),
            ("member_assignment", "MemberAssignment", "bytes", 0, (0, 6), None, None, None, None, 0, ""),
        )),
    ),
)
