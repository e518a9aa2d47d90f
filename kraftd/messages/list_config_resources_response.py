"""ListConfigResourcesResponse: a response of key 74, versions 0-1, flexible 0+.

Generated from schemas/ListConfigResourcesResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConfigResource(Message):
    resource_name: str = ""
    resource_type: int = 16
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListConfigResourcesResponse", 74, "response",
    (0, 1), (0, 32767),
    (
        ("ListConfigResourcesResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("config_resources", "ConfigResources", "ConfigResource", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ConfigResource", (
            ("resource_name", "ResourceName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (1, 1), None, None, None, None, 1, 16),
        )),
    ),
)
