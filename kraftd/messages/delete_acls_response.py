"""DeleteAclsResponse: a response of key 31, versions 1-3, flexible 2+.

Generated from schemas/DeleteAclsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteAclsMatchingAcl(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteAclsFilterResult(Message):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteAclsResponse(Message):
    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteAclsResponse", 31, "response",
    (1, 3), (2, 32767),
    (
        ("DeleteAclsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 3), None, None, None, None, 0, 0),
            ("filter_results", "FilterResults", "DeleteAclsFilterResult", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("DeleteAclsFilterResult", (
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("matching_acls", "MatchingAcls", "DeleteAclsMatchingAcl", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("DeleteAclsMatchingAcl", (
            ("error_code", "ErrorCode", "int16", 0, (1, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 3), (0, 32767), None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("pattern_type", "PatternType", "int8", 0, (1, 3), None, None, None, None, 0, 3),
            ("principal", "Principal", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("operation", "Operation", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("permission_type", "PermissionType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
        )),
    ),
)
