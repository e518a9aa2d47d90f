"""DescribeConfigsRequest: a request of key 32, versions 1-4, flexible 4+.

Generated from schemas/DescribeConfigsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeConfigsRequest", 32, "request",
    (1, 4), (4, 32767),
    (
        ("DescribeConfigsRequest", (
            ("resources", "Resources", "DescribeConfigsResource", 1, (1, 4), None, None, None, None, 0, ""),
            ("include_synonyms", "IncludeSynonyms", "bool", 0, (1, 4), None, None, None, None, 0, 0),
            ("include_documentation", "IncludeDocumentation", "bool", 0, (3, 4), None, None, None, None, 0, 0),
        )),
        ("DescribeConfigsResource", (
            ("resource_type", "ResourceType", "int8", 0, (1, 4), None, None, None, None, 0, 0),
            ("resource_name", "ResourceName", "string", 0, (1, 4), None, None, None, None, 0, ""),
            ("configuration_keys", "ConfigurationKeys", "string", 1, (1, 4), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
