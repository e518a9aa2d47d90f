"""ClientQuotaRecord: a metadata record of key 14, versions 0, flexible 0+.

Generated from schemas/ClientQuotaRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ClientQuotaRecord(Message):
    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ClientQuotaRecord", 14, "metadata",
    (0, 0), (0, 32767),
    (
        ("ClientQuotaRecord", (
            ("entity", "Entity", "EntityData", 1, (0, 0), None, None, None, None, 0, ""),
            ("key", "Key", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "Value", "float64", 0, (0, 0), None, None, None, None, 0, 0),
            ("remove", "Remove", "bool", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("EntityData", (
            ("entity_type", "EntityType", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("entity_name", "EntityName", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
