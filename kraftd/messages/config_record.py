"""ConfigRecord: a metadata record of key 4, versions 0, flexible 0+.

Generated from schemas/ConfigRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConfigRecord(Message):
    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConfigRecord", 4, "metadata",
    (0, 0), (0, 32767),
    (
        ("ConfigRecord", (
            ("resource_type", "ResourceType", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
