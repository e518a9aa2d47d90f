"""AlterConfigsRequest: a request of key 33, versions 0-2, flexible 2+.

Generated from schemas/AlterConfigsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterableConfig(Message):
    name: str = ""
    value: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterConfigsRequest", 33, "request",
    (0, 2), (2, 32767),
    (
        ("AlterConfigsRequest", (
            ("resources", "Resources", "AlterConfigsResource", 1, (0, 2), None, None, None, None, 0, ""),
            ("validate_only", "ValidateOnly", "bool", 0, (0, 2), None, None, None, None, 0, 0),
        )),
        ("AlterConfigsResource", (
            ("resource_type", "ResourceType", "int8", 0, (0, 2), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("configs", "Configs", "AlterableConfig", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("AlterableConfig", (
            ("name", "Name", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (0, 2), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
