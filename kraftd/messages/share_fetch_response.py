"""ShareFetchResponse: a response of key 78, versions 1-2, flexible 0+.

Generated from schemas/ShareFetchResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AcquiredRecords(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: bytes | memoryview | None = None
    acquired_records: list[AcquiredRecords] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareFetchableTopicResponse(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareFetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareFetchResponse", 78, "response",
    (1, 2), (0, 32767),
    (
        ("ShareFetchResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("acquisition_lock_timeout_ms", "AcquisitionLockTimeoutMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("responses", "Responses", "ShareFetchableTopicResponse", 1, (1, 2), None, None, None, None, 0, ""),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("ShareFetchableTopicResponse", (
            ("topic_id", "TopicId", "uuid", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("acknowledge_error_code", "AcknowledgeErrorCode", "int16", 0, (1, 2), None, None, None, None, 0, 0),
            ("acknowledge_error_message", "AcknowledgeErrorMessage", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("current_leader", "CurrentLeader", "LeaderIdAndEpoch", 0, (1, 2), None, None, None, None, 0, ""),
            ("records", "Records", "records", 0, (1, 2), (0, 0), None, None, None, 0, None),
            ("acquired_records", "AcquiredRecords", "AcquiredRecords", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("LeaderIdAndEpoch", (
            ("leader_id", "LeaderId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (1, 2), None, None, None, None, 0, 0),
        )),
        ("AcquiredRecords", (
            ("first_offset", "FirstOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("delivery_count", "DeliveryCount", "int16", 0, (1, 2), None, None, None, None, 0, 0),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (1, 2), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
