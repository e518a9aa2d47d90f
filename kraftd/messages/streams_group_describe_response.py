"""StreamsGroupDescribeResponse: a response of key 89, versions 0, flexible 0+.

Generated from schemas/StreamsGroupDescribeResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class KeyValue(Message):
    key: str = ""
    value: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicInfo(Message):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Topology(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Endpoint(Message):
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TaskOffset(Message):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Assignment(Message):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Member(Message):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupDescribeResponse", 89, "response",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupDescribeResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("groups", "Groups", "DescribedGroup", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DescribedGroup", (
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("group_state", "GroupState", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("group_epoch", "GroupEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("assignment_epoch", "AssignmentEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("topology", "Topology", "Topology", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("members", "Members", "Member", 1, (0, 0), None, None, None, None, 0, ""),
            ("authorized_operations", "AuthorizedOperations", "int32", 0, (0, 0), None, None, None, None, 0, -2147483648),
        )),
        ("Topology", (
            ("epoch", "Epoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("subtopologies", "Subtopologies", "Subtopology", 1, (0, 0), (0, 32767), None, None, None, 0, None),
        )),
        ("Subtopology", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("source_topics", "SourceTopics", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_sink_topics", "RepartitionSinkTopics", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("state_changelog_topics", "StateChangelogTopics", "TopicInfo", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_source_topics", "RepartitionSourceTopics", "TopicInfo", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicInfo", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("replication_factor", "ReplicationFactor", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("topic_configs", "TopicConfigs", "KeyValue", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("KeyValue", (
            ("key", "Key", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Member", (
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("instance_id", "InstanceId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("rack_id", "RackId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("client_id", "ClientId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topology_epoch", "TopologyEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("process_id", "ProcessId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("user_endpoint", "UserEndpoint", "Endpoint", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("client_tags", "ClientTags", "KeyValue", 1, (0, 0), None, None, None, None, 0, ""),
            ("task_offsets", "TaskOffsets", "TaskOffset", 1, (0, 0), None, None, None, None, 0, ""),
            ("task_end_offsets", "TaskEndOffsets", "TaskOffset", 1, (0, 0), None, None, None, None, 0, ""),
            ("assignment", "Assignment", "Assignment", 0, (0, 0), None, None, None, None, 0, ""),
            ("target_assignment", "TargetAssignment", "Assignment", 0, (0, 0), None, None, None, None, 0, ""),
            ("is_classic", "IsClassic", "bool", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("Endpoint", (
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("TaskOffset", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("offset", "Offset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("Assignment", (
            ("active_tasks", "ActiveTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("standby_tasks", "StandbyTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("warmup_tasks", "WarmupTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TaskIds", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
