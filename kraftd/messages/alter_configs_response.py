"""AlterConfigsResponse: a response of key 33, versions 0-2, flexible 2+.

Generated from schemas/AlterConfigsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterConfigsResourceResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterConfigsResponse", 33, "response",
    (0, 2), (2, 32767),
    (
        ("AlterConfigsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("responses", "Responses", "AlterConfigsResourceResponse", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("AlterConfigsResourceResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 2), (0, 32767), None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (0, 2), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 2), None, None, None, None, 0, ""),
        )),
    ),
)
