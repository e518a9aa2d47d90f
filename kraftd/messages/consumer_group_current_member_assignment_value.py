"""ConsumerGroupCurrentMemberAssignmentValue: the value of a group coordinator's record of key 8, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupCurrentMemberAssignmentValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupCurrentMemberAssignmentValue", 8, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupCurrentMemberAssignmentValue", (
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("previous_member_epoch", "PreviousMemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("state", "State", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("assigned_partitions", "AssignedPartitions", "TopicPartitions", 1, (0, 0), None, None, None, None, 0, ""),
            ("partitions_pending_revocation", "PartitionsPendingRevocation", "TopicPartitions", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("assignment_epochs", "AssignmentEpochs", "int32", 1, (0, 0), (0, 32767), (0, 32767), 0, None, 0, ""),
        )),
    ),
)
