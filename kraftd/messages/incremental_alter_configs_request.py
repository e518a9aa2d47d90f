"""IncrementalAlterConfigsRequest: a request of key 44, versions 0-1, flexible 1+.

Generated from schemas/IncrementalAlterConfigsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterableConfig(Message):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "IncrementalAlterConfigsRequest", 44, "request",
    (0, 1), (1, 32767),
    (
        ("IncrementalAlterConfigsRequest", (
            ("resources", "Resources", "AlterConfigsResource", 1, (0, 1), None, None, None, None, 0, ""),
            ("validate_only", "ValidateOnly", "bool", 0, (0, 1), None, None, None, None, 0, 0),
        )),
        ("AlterConfigsResource", (
            ("resource_type", "ResourceType", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("configs", "Configs", "AlterableConfig", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("AlterableConfig", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("config_operation", "ConfigOperation", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("value", "Value", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
