"""AlterClientQuotasRequest: a request of key 49, versions 0-1, flexible 1+.

Generated from schemas/AlterClientQuotasRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OpData(Message):
    key: str = ""
    value: float = 0.0
    remove: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class EntryData(Message):
    entity: list[EntityData] = []
    ops: list[OpData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = []
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterClientQuotasRequest", 49, "request",
    (0, 1), (1, 32767),
    (
        ("AlterClientQuotasRequest", (
            ("entries", "Entries", "EntryData", 1, (0, 1), None, None, None, None, 0, ""),
            ("validate_only", "ValidateOnly", "bool", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("EntryData", (
            ("entity", "Entity", "EntityData", 1, (0, 1), None, None, None, None, 0, ""),
            ("ops", "Ops", "OpData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("EntityData", (
            ("entity_type", "EntityType", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("entity_name", "EntityName", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
        ("OpData", (
            ("key", "Key", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("value", "Value", "float64", 0, (0, 1), None, None, None, None, 0, 0),
            ("remove", "Remove", "bool", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
