"""ShareUpdateValue: the value of a share coordinator's record of key 1, versions 0, flexible 0+.

Generated from schemas/ShareUpdateValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StateBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareUpdateValue(Message):
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareUpdateValue", 1, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareUpdateValue", (
            ("snapshot_epoch", "SnapshotEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("start_offset", "StartOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("delivery_complete_count", "DeliveryCompleteCount", "int32", 0, (0, 0), None, (0, 32767), 0, None, 0, -1),
            ("state_batches", "StateBatches", "StateBatch", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("StateBatch", (
            ("first_offset", "FirstOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("delivery_state", "DeliveryState", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("delivery_count", "DeliveryCount", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
