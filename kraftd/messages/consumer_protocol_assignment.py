"""ConsumerProtocolAssignment: data, versions 0-3.

Generated from schemas/ConsumerProtocolAssignment.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartition(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()


class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = []
    user_data: bytes | None = None


SCHEMA: Table = (
    "ConsumerProtocolAssignment", None, "data",
    (0, 3), None,
    (
        ("ConsumerProtocolAssignment", (
            ("assigned_partitions", "AssignedPartitions", "TopicPartition", 1, (0, 3), None, None, None, None, 0, ""),
            ("user_data", "UserData", "bytes", 0, (0, 3), (0, 32767), None, None, None, 0, None),
        )),
        ("TopicPartition", (
            ("topic", "Topic", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 3), None, None, None, None, 0, ""),
        )),
    ),
)
