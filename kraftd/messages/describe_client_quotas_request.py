"""DescribeClientQuotasRequest: a request of key 48, versions 0-1, flexible 1+.

Generated from schemas/DescribeClientQuotasRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ComponentData(Message):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = []
    strict: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeClientQuotasRequest", 48, "request",
    (0, 1), (1, 32767),
    (
        ("DescribeClientQuotasRequest", (
            ("components", "Components", "ComponentData", 1, (0, 1), None, None, None, None, 0, ""),
            ("strict", "Strict", "bool", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("ComponentData", (
            ("entity_type", "EntityType", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("match_type", "MatchType", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("match", "Match", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
