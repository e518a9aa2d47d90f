"""AlterClientQuotasResponse: a response of key 49, versions 0-1, flexible 1+.

Generated from schemas/AlterClientQuotasResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class EntryData(Message):
    error_code: int = 0
    error_message: str | None = ""
    entity: list[EntityData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    entries: list[EntryData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterClientQuotasResponse", 49, "response",
    (0, 1), (1, 32767),
    (
        ("AlterClientQuotasResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("entries", "Entries", "EntryData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("EntryData", (
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("entity", "Entity", "EntityData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("EntityData", (
            ("entity_type", "EntityType", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("entity_name", "EntityName", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
