"""DescribeAclsRequest: a request of key 29, versions 1-3, flexible 2+.

Generated from schemas/DescribeAclsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeAclsRequest(Message):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeAclsRequest", 29, "request",
    (1, 3), (2, 32767),
    (
        ("DescribeAclsRequest", (
            ("resource_type_filter", "ResourceTypeFilter", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("resource_name_filter", "ResourceNameFilter", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("pattern_type_filter", "PatternTypeFilter", "int8", 0, (1, 3), None, None, None, None, 0, 3),
            ("principal_filter", "PrincipalFilter", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("host_filter", "HostFilter", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("operation", "Operation", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("permission_type", "PermissionType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
        )),
    ),
)
