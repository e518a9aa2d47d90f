"""ShareGroupTargetAssignmentMemberValue: the value of a group coordinator's record of key 13, versions 0, flexible 0+.

Generated from schemas/ShareGroupTargetAssignmentMemberValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartition(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupTargetAssignmentMemberValue", 13, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareGroupTargetAssignmentMemberValue", (
            ("topic_partitions", "TopicPartitions", "TopicPartition", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicPartition", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
