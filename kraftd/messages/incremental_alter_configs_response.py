"""IncrementalAlterConfigsResponse: a response of key 44, versions 0-1, flexible 1+.

Generated from schemas/IncrementalAlterConfigsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AlterConfigsResourceResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "IncrementalAlterConfigsResponse", 44, "response",
    (0, 1), (1, 32767),
    (
        ("IncrementalAlterConfigsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("responses", "Responses", "AlterConfigsResourceResponse", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("AlterConfigsResourceResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
