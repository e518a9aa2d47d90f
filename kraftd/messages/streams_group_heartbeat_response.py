"""StreamsGroupHeartbeatResponse: a response of key 88, versions 0, flexible 0+.

Generated from schemas/StreamsGroupHeartbeatResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class Status(Message):
    status_code: int = 0
    status_detail: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Endpoint(Message):
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicPartition(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class EndpointToPartitions(Message):
    user_endpoint: Endpoint = field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupHeartbeatResponse", 88, "response",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupHeartbeatResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("heartbeat_interval_ms", "HeartbeatIntervalMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("acceptable_recovery_lag", "AcceptableRecoveryLag", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("task_offset_interval_ms", "TaskOffsetIntervalMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("status", "Status", "Status", 1, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("active_tasks", "ActiveTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("standby_tasks", "StandbyTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("warmup_tasks", "WarmupTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("endpoint_information_epoch", "EndpointInformationEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("partitions_by_user_endpoint", "PartitionsByUserEndpoint", "EndpointToPartitions", 1, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
        ("Status", (
            ("status_code", "StatusCode", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("status_detail", "StatusDetail", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TaskIds", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("EndpointToPartitions", (
            ("user_endpoint", "UserEndpoint", "Endpoint", 0, (0, 0), None, None, None, None, 0, ""),
            ("active_partitions", "ActivePartitions", "TopicPartition", 1, (0, 0), None, None, None, None, 0, ""),
            ("standby_partitions", "StandbyPartitions", "TopicPartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Endpoint", (
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("TopicPartition", (
            ("topic", "Topic", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
