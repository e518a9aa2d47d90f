"""ShareGroupDescribeResponse: a response of key 77, versions 1, flexible 0+.

Generated from schemas/ShareGroupDescribeResponse.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Member(Message):
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    assignment: Assignment = field(default_factory=Assignment)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupDescribeResponse", 77, "response",
    (1, 1), (0, 32767),
    (
        ("ShareGroupDescribeResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("groups", "Groups", "DescribedGroup", 1, (1, 1), None, None, None, None, 0, ""),
        )),
        ("DescribedGroup", (
            ("error_code", "ErrorCode", "int16", 0, (1, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 1), (0, 32767), None, None, None, 0, None),
            ("group_id", "GroupId", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("group_state", "GroupState", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("group_epoch", "GroupEpoch", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("assignment_epoch", "AssignmentEpoch", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("assignor_name", "AssignorName", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("members", "Members", "Member", 1, (1, 1), None, None, None, None, 0, ""),
            ("authorized_operations", "AuthorizedOperations", "int32", 0, (1, 1), None, None, None, None, 0, -2147483648),
        )),
        ("Member", (
            ("member_id", "MemberId", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("rack_id", "RackId", "string", 0, (1, 1), (0, 32767), None, None, None, 0, None),
            ("member_epoch", "MemberEpoch", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("client_id", "ClientId", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (1, 1), None, None, None, None, 0, ""),
            ("assignment", "Assignment", "Assignment", 0, (1, 1), None, None, None, None, 0, ""),
        )),
        ("Assignment", (
            ("topic_partitions", "TopicPartitions", "TopicPartitions", 1, (1, 1), None, None, None, None, 0, ""),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (1, 1), None, None, None, None, 0, ""),
            ("topic_name", "TopicName", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (1, 1), None, None, None, None, 0, ""),
        )),
    ),
)
