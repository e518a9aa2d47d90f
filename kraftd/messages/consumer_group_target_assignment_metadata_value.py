"""ConsumerGroupTargetAssignmentMetadataValue: the value of a group coordinator's record of key 6, versions 0, flexible 0+.

Generated from schemas/ConsumerGroupTargetAssignmentMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupTargetAssignmentMetadataValue", 6, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ConsumerGroupTargetAssignmentMetadataValue", (
            ("assignment_epoch", "AssignmentEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("assignment_timestamp", "AssignmentTimestamp", "int64", 0, (0, 0), None, (0, 32767), 0, None, 1, 0),
        )),
    ),
)
