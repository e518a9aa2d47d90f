"""ShareAcknowledgeResponse: a response of key 79, versions 1-2, flexible 0+.

Generated from schemas/ShareAcknowledgeResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareAcknowledgeTopicResponse(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareAcknowledgeResponse", 79, "response",
    (1, 2), (0, 32767),
    (
        ("ShareAcknowledgeResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("acquisition_lock_timeout_ms", "AcquisitionLockTimeoutMs", "int32", 0, (2, 2), None, None, None, None, 1, 0),
            ("responses", "Responses", "ShareAcknowledgeTopicResponse", 1, (1, 2), None, None, None, None, 0, ""),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("ShareAcknowledgeTopicResponse", (
            ("topic_id", "TopicId", "uuid", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("current_leader", "CurrentLeader", "LeaderIdAndEpoch", 0, (1, 2), None, None, None, None, 0, ""),
        )),
        ("LeaderIdAndEpoch", (
            ("leader_id", "LeaderId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (1, 2), None, None, None, None, 0, 0),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
