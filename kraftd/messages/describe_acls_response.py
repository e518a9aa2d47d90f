"""DescribeAclsResponse: a response of key 29, versions 1-3, flexible 2+.

Generated from schemas/DescribeAclsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AclDescription(Message):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeAclsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeAclsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeAclsResponse", 29, "response",
    (1, 3), (2, 32767),
    (
        ("DescribeAclsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 3), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("resources", "Resources", "DescribeAclsResource", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("DescribeAclsResource", (
            ("resource_type", "ResourceType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("pattern_type", "PatternType", "int8", 0, (1, 3), None, None, None, None, 0, 3),
            ("acls", "Acls", "AclDescription", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("AclDescription", (
            ("principal", "Principal", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("operation", "Operation", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("permission_type", "PermissionType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
        )),
    ),
)
