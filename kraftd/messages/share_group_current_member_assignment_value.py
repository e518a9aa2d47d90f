"""ShareGroupCurrentMemberAssignmentValue: the value of a group coordinator's record of key 14, versions 0, flexible 0+.

Generated from schemas/ShareGroupCurrentMemberAssignmentValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupCurrentMemberAssignmentValue", 14, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareGroupCurrentMemberAssignmentValue", (
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("previous_member_epoch", "PreviousMemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("state", "State", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("assigned_partitions", "AssignedPartitions", "TopicPartitions", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
