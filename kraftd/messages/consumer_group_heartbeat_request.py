"""ConsumerGroupHeartbeatRequest: a request of key 68, versions 0-1, flexible 0+.

Generated from schemas/ConsumerGroupHeartbeatRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupHeartbeatRequest", 68, "request",
    (0, 1), (0, 32767),
    (
        ("ConsumerGroupHeartbeatRequest", (
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("instance_id", "InstanceId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("rack_id", "RackId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("rebalance_timeout_ms", "RebalanceTimeoutMs", "int32", 0, (0, 1), None, None, None, None, 0, -1),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (0, 1), (0, 32767), None, None, None, 0, None),
            ("subscribed_topic_regex", "SubscribedTopicRegex", "string", 0, (1, 1), (1, 32767), None, None, None, 0, None),
            ("server_assignor", "ServerAssignor", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("topic_partitions", "TopicPartitions", "TopicPartitions", 1, (0, 1), (0, 32767), None, None, None, 0, None),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
