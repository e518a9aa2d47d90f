"""ConsumerGroupHeartbeatResponse: a response of key 68, versions 0-1, flexible 0+.

Generated from schemas/ConsumerGroupHeartbeatResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupHeartbeatResponse", 68, "response",
    (0, 1), (0, 32767),
    (
        ("ConsumerGroupHeartbeatResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("member_id", "MemberId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("heartbeat_interval_ms", "HeartbeatIntervalMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("assignment", "Assignment", "Assignment", 0, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
        ("Assignment", (
            ("topic_partitions", "TopicPartitions", "TopicPartitions", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
