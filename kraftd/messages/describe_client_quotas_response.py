"""DescribeClientQuotasResponse: a response of key 48, versions 0-1, flexible 1+.

Generated from schemas/DescribeClientQuotasResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ValueData(Message):
    key: str = ""
    value: float = 0.0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class EntryData(Message):
    entity: list[EntityData] = []
    values: list[ValueData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeClientQuotasResponse", 48, "response",
    (0, 1), (1, 32767),
    (
        ("DescribeClientQuotasResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("entries", "Entries", "EntryData", 1, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
        ("EntryData", (
            ("entity", "Entity", "EntityData", 1, (0, 1), None, None, None, None, 0, ""),
            ("values", "Values", "ValueData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("EntityData", (
            ("entity_type", "EntityType", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("entity_name", "EntityName", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
        ("ValueData", (
            ("key", "Key", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("value", "Value", "float64", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
