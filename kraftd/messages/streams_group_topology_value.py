"""StreamsGroupTopologyValue: the value of a group coordinator's record of key 23, versions 0, flexible 0+.

Generated from schemas/StreamsGroupTopologyValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicConfig(Message):
    key: str = ""
    value: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicInfo(Message):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = []
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


class StreamsGroupTopologyValue(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupTopologyValue", 23, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupTopologyValue", (
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
            ("topic_configs", "TopicConfigs", "TopicConfig", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicConfig", (
            ("key", "key", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "value", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("CopartitionGroup", (
            ("source_topics", "SourceTopics", "int16", 1, (0, 0), None, None, None, None, 0, ""),
            ("source_topic_regex", "SourceTopicRegex", "int16", 1, (0, 0), None, None, None, None, 0, ""),
            ("repartition_source_topics", "RepartitionSourceTopics", "int16", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
