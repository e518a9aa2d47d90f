"""CreateTopicsResponse: a response of key 19, versions 2-7, flexible 5+.

Generated from schemas/CreateTopicsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreatableTopicConfigs(Message):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatableTopicResult(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreateTopicsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateTopicsResponse", 19, "response",
    (2, 7), (5, 32767),
    (
        ("CreateTopicsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (2, 7), None, None, None, None, 1, 0),
            ("topics", "Topics", "CreatableTopicResult", 1, (2, 7), None, None, None, None, 0, ""),
        )),
        ("CreatableTopicResult", (
            ("name", "Name", "string", 0, (2, 7), None, None, None, None, 0, ""),
            ("topic_id", "TopicId", "uuid", 0, (7, 7), None, None, None, None, 1, ""),
            ("error_code", "ErrorCode", "int16", 0, (2, 7), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (2, 7), (0, 32767), None, None, None, 1, ""),
            ("topic_config_error_code", "TopicConfigErrorCode", "int16", 0, (5, 7), None, (5, 32767), 0, None, 1, 0),
            ("num_partitions", "NumPartitions", "int32", 0, (5, 7), None, None, None, None, 1, -1),
            ("replication_factor", "ReplicationFactor", "int16", 0, (5, 7), None, None, None, None, 1, -1),
            ("configs", "Configs", "CreatableTopicConfigs", 1, (5, 7), (5, 32767), None, None, None, 1, ""),
        )),
        ("CreatableTopicConfigs", (
            ("name", "Name", "string", 0, (5, 7), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (5, 7), (5, 32767), None, None, None, 0, ""),
            ("read_only", "ReadOnly", "bool", 0, (5, 7), None, None, None, None, 0, 0),
            ("config_source", "ConfigSource", "int8", 0, (5, 7), None, None, None, None, 1, -1),
            ("is_sensitive", "IsSensitive", "bool", 0, (5, 7), None, None, None, None, 0, 0),
        )),
    ),
)
