"""ShareGroupStatePartitionMetadataValue: the value of a group coordinator's record of key 15, versions 0, flexible 0+.

Generated from schemas/ShareGroupStatePartitionMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitionsInfo(Message):
    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicInfo(Message):
    topic_id: bytes = bytes(16)
    topic_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupStatePartitionMetadataValue", 15, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareGroupStatePartitionMetadataValue", (
            ("initializing_topics", "InitializingTopics", "TopicPartitionsInfo", 1, (0, 0), None, None, None, None, 0, ""),
            ("initialized_topics", "InitializedTopics", "TopicPartitionsInfo", 1, (0, 0), None, None, None, None, 0, ""),
            ("deleting_topics", "DeletingTopics", "TopicInfo", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicPartitionsInfo", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicInfo", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
