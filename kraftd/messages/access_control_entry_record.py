"""AccessControlEntryRecord: a metadata record of key 18, versions 0, flexible 0+.

Generated from schemas/AccessControlEntryRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AccessControlEntryRecord(Message):
    id: bytes = bytes(16)
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AccessControlEntryRecord", 18, "metadata",
    (0, 0), (0, 32767),
    (
        ("AccessControlEntryRecord", (
            ("id", "Id", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("pattern_type", "PatternType", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("principal", "Principal", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("operation", "Operation", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("permission_type", "PermissionType", "int8", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
