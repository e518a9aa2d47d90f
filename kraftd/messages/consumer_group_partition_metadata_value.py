"""ConsumerGroupPartitionMetadataValue: the value of a group coordinator's record of key 4, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupPartitionMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionMetadata(Message):
    partition: int = 0
    racks: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicMetadata(Message):
    topic_id: bytes = bytes(16)
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupPartitionMetadataValue", 4, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupPartitionMetadataValue", (
            ("topics", "Topics", "TopicMetadata", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicMetadata", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("num_partitions", "NumPartitions", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("partition_metadata", "PartitionMetadata", "PartitionMetadata", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("PartitionMetadata", (
            ("partition", "Partition", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("racks", "Racks", "string", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
