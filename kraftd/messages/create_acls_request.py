"""CreateAclsRequest: a request of key 30, versions 1-3, flexible 2+.

Generated from schemas/CreateAclsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AclCreation(Message):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreateAclsRequest(Message):
    creations: list[AclCreation] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateAclsRequest", 30, "request",
    (1, 3), (2, 32767),
    (
        ("CreateAclsRequest", (
            ("creations", "Creations", "AclCreation", 1, (1, 3), None, None, None, None, 0, ""),
        )),
        ("AclCreation", (
            ("resource_type", "ResourceType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("resource_pattern_type", "ResourcePatternType", "int8", 0, (1, 3), None, None, None, None, 0, 3),
            ("principal", "Principal", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("operation", "Operation", "int8", 0, (1, 3), None, None, None, None, 0, 0),
            ("permission_type", "PermissionType", "int8", 0, (1, 3), None, None, None, None, 0, 0),
        )),
    ),
)
