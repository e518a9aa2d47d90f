"""DescribeConfigsResponse: a response of key 32, versions 1-4, flexible 4+.

Generated from schemas/DescribeConfigsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeConfigsSynonym(Message):
    name: str = ""
    value: str | None = ""
    source: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeConfigsResourceResult(Message):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: int = 0
    documentation: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeConfigsResult(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeConfigsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeConfigsResponse", 32, "response",
    (1, 4), (4, 32767),
    (
        ("DescribeConfigsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 4), None, None, None, None, 0, 0),
            ("results", "Results", "DescribeConfigsResult", 1, (1, 4), None, None, None, None, 0, ""),
        )),
        ("DescribeConfigsResult", (
            ("error_code", "ErrorCode", "int16", 0, (1, 4), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 4), (0, 32767), None, None, None, 0, ""),
            ("resource_type", "ResourceType", "int8", 0, (1, 4), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (1, 4), None, None, None, None, 0, ""),
            ("configs", "Configs", "DescribeConfigsResourceResult", 1, (1, 4), None, None, None, None, 0, ""),
        )),
        ("DescribeConfigsResourceResult", (
            ("name", "Name", "string", 0, (1, 4), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (1, 4), (0, 32767), None, None, None, 0, ""),
            ("read_only", "ReadOnly", "bool", 0, (1, 4), None, None, None, None, 0, 0),
            ("config_source", "ConfigSource", "int8", 0, (1, 4), None, None, None, None, 1, -1),
            ("is_sensitive", "IsSensitive", "bool", 0, (1, 4), None, None, None, None, 0, 0),
            ("synonyms", "Synonyms", "DescribeConfigsSynonym", 1, (1, 4), None, None, None, None, 1, ""),
            ("config_type", "ConfigType", "int8", 0, (3, 4), None, None, None, None, 1, 0),
            ("documentation", "Documentation", "string", 0, (3, 4), (0, 32767), None, None, None, 1, ""),
        )),
        ("DescribeConfigsSynonym", (
            ("name", "Name", "string", 0, (1, 4), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (1, 4), (0, 32767), None, None, None, 0, ""),
            ("source", "Source", "int8", 0, (1, 4), None, None, None, None, 0, 0),
        )),
    ),
)
