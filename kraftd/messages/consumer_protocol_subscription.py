"""ConsumerProtocolSubscription: data, versions 0-3.

Generated from schemas/ConsumerProtocolSubscription.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartition(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()


class ConsumerProtocolSubscription(Message):
    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = []
    generation_id: int = -1
    rack_id: str | None = None


SCHEMA: Table = (
    "ConsumerProtocolSubscription", None, "data",
    (0, 3), None,
    (
        ("ConsumerProtocolSubscription", (
            ("topics", "Topics", "string", 1, (0, 3), None, None, None, None, 0, ""),
            ("user_data", "UserData", "bytes", 0, (0, 3), (0, 32767), None, None, None, 0, None),
            ("owned_partitions", "OwnedPartitions", "TopicPartition", 1, (1, 3), None, None, None, None, 1, ""),
            ("generation_id", "GenerationId", "int32", 0, (2, 3), None, None, None, None, 1, -1),
            ("rack_id", "RackId", "string", 0, (3, 3), (3, 32767), None, None, None, 1, None),
        )),
        ("TopicPartition", (
            ("topic", "Topic", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (1, 3), None, None, None, None, 0, ""),
        )),
    ),
)
