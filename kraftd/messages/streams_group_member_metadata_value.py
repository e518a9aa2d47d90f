"""StreamsGroupMemberMetadataValue: the value of a group coordinator's record of key 19, versions 0, flexible 0+.

Generated from schemas/StreamsGroupMemberMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Endpoint(Message):
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class KeyValue(Message):
    key: str = ""
    value: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupMemberMetadataValue(Message):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupMemberMetadataValue", 19, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupMemberMetadataValue", (
            ("instance_id", "InstanceId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("rack_id", "RackId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("client_id", "ClientId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("rebalance_timeout_ms", "RebalanceTimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("topology_epoch", "TopologyEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("process_id", "ProcessId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("user_endpoint", "UserEndpoint", "Endpoint", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("client_tags", "ClientTags", "KeyValue", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Endpoint", (
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("KeyValue", (
            ("key", "Key", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
