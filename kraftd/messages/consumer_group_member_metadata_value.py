"""ConsumerGroupMemberMetadataValue: the value of a group coordinator's record of key 5, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupMemberMetadataValue.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class ClassicProtocol(Message):
    name: str = ""
    metadata: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ClassicMemberMetadata(Message):
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = field(default_factory=ClassicMemberMetadata)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupMemberMetadataValue", 5, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupMemberMetadataValue", (
            ("instance_id", "InstanceId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("rack_id", "RackId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("client_id", "ClientId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("subscribed_topic_regex", "SubscribedTopicRegex", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("rebalance_timeout_ms", "RebalanceTimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("server_assignor", "ServerAssignor", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("classic_member_metadata", "ClassicMemberMetadata", "ClassicMemberMetadata", 0, (0, 0), (0, 32767), (0, 32767), 0, None, 0, ""),
        )),
        ("ClassicMemberMetadata", (
            ("session_timeout_ms", "SessionTimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("supported_protocols", "SupportedProtocols", "ClassicProtocol", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ClassicProtocol", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("metadata", "Metadata", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
