"""CreateTopicsRequest: a request of key 19, versions 2-7, flexible 5+.

Generated from schemas/CreateTopicsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreatableReplicaAssignment(Message):
    partition_index: int = 0
    broker_ids: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatableTopicConfig(Message):
    name: str = ""
    value: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreatableTopic(Message):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = []
    timeout_ms: int = 60000
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateTopicsRequest", 19, "request",
    (2, 7), (5, 32767),
    (
        ("CreateTopicsRequest", (
            ("topics", "Topics", "CreatableTopic", 1, (2, 7), None, None, None, None, 0, ""),
            ("timeout_ms", "timeoutMs", "int32", 0, (2, 7), None, None, None, None, 0, 60000),
            ("validate_only", "validateOnly", "bool", 0, (2, 7), None, None, None, None, 0, 0),
        )),
        ("CreatableTopic", (
            ("name", "Name", "string", 0, (2, 7), None, None, None, None, 0, ""),
            ("num_partitions", "NumPartitions", "int32", 0, (2, 7), None, None, None, None, 0, 0),
            ("replication_factor", "ReplicationFactor", "int16", 0, (2, 7), None, None, None, None, 0, 0),
            ("assignments", "Assignments", "CreatableReplicaAssignment", 1, (2, 7), None, None, None, None, 0, ""),
            ("configs", "Configs", "CreatableTopicConfig", 1, (2, 7), None, None, None, None, 0, ""),
        )),
        ("CreatableReplicaAssignment", (
            ("partition_index", "PartitionIndex", "int32", 0, (2, 7), None, None, None, None, 0, 0),
            ("broker_ids", "BrokerIds", "int32", 1, (2, 7), None, None, None, None, 0, ""),
        )),
        ("CreatableTopicConfig", (
            ("name", "Name", "string", 0, (2, 7), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (2, 7), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
