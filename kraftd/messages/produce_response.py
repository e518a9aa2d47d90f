"""ProduceResponse: a response of key 0, versions 3-13, flexible 9+.

Generated from schemas/ProduceResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class BatchIndexAndErrorMessage(Message):
    batch_index: int = 0
    batch_index_error_message: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class PartitionProduceResponse(Message):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = []
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicProduceResponse(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partition_responses: list[PartitionProduceResponse] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ProduceResponse", 0, "response",
    (3, 13), (9, 32767),
    (
        ("ProduceResponse", (
            ("responses", "Responses", "TopicProduceResponse", 1, (3, 13), None, None, None, None, 0, ""),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (3, 13), None, None, None, None, 1, 0),
            ("node_endpoints", "NodeEndpoints", "NodeEndpoint", 1, (10, 13), None, (10, 32767), 0, None, 0, ""),
        )),
        ("TopicProduceResponse", (
            ("name", "Name", "string", 0, (3, 12), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (13, 13), None, None, None, None, 1, ""),
            ("partition_responses", "PartitionResponses", "PartitionProduceResponse", 1, (3, 13), None, None, None, None, 0, ""),
        )),
        ("PartitionProduceResponse", (
            ("index", "Index", "int32", 0, (3, 13), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (3, 13), None, None, None, None, 0, 0),
            ("base_offset", "BaseOffset", "int64", 0, (3, 13), None, None, None, None, 0, 0),
            ("log_append_time_ms", "LogAppendTimeMs", "int64", 0, (3, 13), None, None, None, None, 1, -1),
            ("log_start_offset", "LogStartOffset", "int64", 0, (5, 13), None, None, None, None, 1, -1),
            ("record_errors", "RecordErrors", "BatchIndexAndErrorMessage", 1, (8, 13), None, None, None, None, 1, ""),
            ("error_message", "ErrorMessage", "string", 0, (8, 13), (8, 32767), None, None, None, 1, None),
            ("current_leader", "CurrentLeader", "LeaderIdAndEpoch", 0, (10, 13), None, (10, 32767), 0, None, 0, ""),
        )),
        ("BatchIndexAndErrorMessage", (
            ("batch_index", "BatchIndex", "int32", 0, (8, 13), None, None, None, None, 0, 0),
            ("batch_index_error_message", "BatchIndexErrorMessage", "string", 0, (8, 13), (8, 32767), None, None, None, 0, None),
        )),
        ("LeaderIdAndEpoch", (
            ("leader_id", "LeaderId", "int32", 0, (10, 13), None, None, None, None, 0, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (10, 13), None, None, None, None, 0, -1),
        )),
        ("NodeEndpoint", (
            ("node_id", "NodeId", "int32", 0, (10, 13), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (10, 13), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (10, 13), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (10, 13), (10, 32767), None, None, None, 0, None),
        )),
    ),
)
