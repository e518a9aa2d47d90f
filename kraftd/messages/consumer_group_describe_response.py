"""ConsumerGroupDescribeResponse: a response of key 69, versions 0-1, flexible 0+.

Generated from schemas/ConsumerGroupDescribeResponse.json; do not edit.
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
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: int = -1
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


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ConsumerGroupDescribeResponse", 69, "response",
    (0, 1), (0, 32767),
    (
        ("ConsumerGroupDescribeResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("groups", "Groups", "DescribedGroup", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("DescribedGroup", (
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("group_state", "GroupState", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("group_epoch", "GroupEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("assignment_epoch", "AssignmentEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("assignor_name", "AssignorName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("members", "Members", "Member", 1, (0, 1), None, None, None, None, 0, ""),
            ("authorized_operations", "AuthorizedOperations", "int32", 0, (0, 1), None, None, None, None, 0, -2147483648),
        )),
        ("Member", (
            ("member_id", "MemberId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("instance_id", "InstanceId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("rack_id", "RackId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("client_id", "ClientId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (0, 1), None, None, None, None, 0, ""),
            ("subscribed_topic_regex", "SubscribedTopicRegex", "string", 0, (0, 1), (0, 32767), None, None, None, 0, None),
            ("assignment", "Assignment", "Assignment", 0, (0, 1), None, None, None, None, 0, ""),
            ("target_assignment", "TargetAssignment", "Assignment", 0, (0, 1), None, None, None, None, 0, ""),
            ("member_type", "MemberType", "int8", 0, (1, 1), None, None, None, None, 1, -1),
        )),
        ("Assignment", (
            ("topic_partitions", "TopicPartitions", "TopicPartitions", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("TopicPartitions", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("topic_name", "TopicName", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
