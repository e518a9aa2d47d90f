"""StreamsGroupHeartbeatRequest: a request of key 88, versions 0, flexible 0+.

Generated from schemas/StreamsGroupHeartbeatRequest.json; do not edit.
"""

from __future__ import annotations

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


class CopartitionGroup(Message):
    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Topology(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
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


class StreamsGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupHeartbeatRequest", 88, "request",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupHeartbeatRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("endpoint_information_epoch", "EndpointInformationEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("instance_id", "InstanceId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("rack_id", "RackId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("rebalance_timeout_ms", "RebalanceTimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, -1),
            ("topology", "Topology", "Topology", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("active_tasks", "ActiveTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("standby_tasks", "StandbyTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("warmup_tasks", "WarmupTasks", "TaskIds", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("process_id", "ProcessId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("user_endpoint", "UserEndpoint", "Endpoint", 0, (0, 0), (0, 32767), None, None, None, 0, None),
            ("client_tags", "ClientTags", "KeyValue", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("task_offsets", "TaskOffsets", "TaskOffset", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("task_end_offsets", "TaskEndOffsets", "TaskOffset", 1, (0, 0), (0, 32767), None, None, None, 0, None),
            ("shutdown_application", "ShutdownApplication", "bool", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("Topology", (
            ("epoch", "Epoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("subtopologies", "Subtopologies", "Subtopology", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Subtopology", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("source_topics", "SourceTopics", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("source_topic_regex", "SourceTopicRegex", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("state_changelog_topics", "StateChangelogTopics", "TopicInfo", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_sink_topics", "RepartitionSinkTopics", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_source_topics", "RepartitionSourceTopics", "TopicInfo", 1, (0, 0), None, None, None, None, 0, ""),
            ("copartition_groups", "CopartitionGroups", "CopartitionGroup", 1, (0, 0), None, None, None, None, 0, ""),
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
        ("CopartitionGroup", (
            ("source_topics", "SourceTopics", "int16", 1, (0, 0), None, None, None, None, 0, ""),
            ("source_topic_regex", "SourceTopicRegex", "int16", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_source_topics", "RepartitionSourceTopics", "int16", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TaskIds", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
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
    ),
)
