"""What share groups refuse, API by API: the code and the text of each refusal."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.events import PartitionResigned
from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.share.members import Denied, ShareDesk, Sharer, desk_of, settle

READ, DESCRIBE, DELETE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE
GROUP, TOPIC = AclResourceType.GROUP, AclResourceType.TOPIC
HIDDEN = "The group has described topic(s) that the client is not authorized to describe."

Said = tuple[ErrorCode, str | None]


def beat(group: str = "g", member: str = "m", epoch: int = 0, *topics: str, rack: str | None = None) -> Any:
    return ShareGroupHeartbeatRequest(group, member, epoch, rack, topics or None)


def alter(group: str = "g", **topics: dict[int, int]) -> AlterShareGroupOffsetsRequest:
    rows = [
        AlterShareGroupOffsetsRequestTopic(
            name, [AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
        )
        for name, offsets in topics.items()
    ]
    return AlterShareGroupOffsetsRequest(group, rows)


def delete(group: str = "g", *topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group, [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
    )


def said(answer: Any) -> Said:
    return answer.error_code, answer.error_message


def busy() -> ShareDesk:
    """Share group `g` has a member, `empty` has none, `c` is a consumer group."""
    desk = desk_of(orders=2, audit=1)
    one = Sharer(desk, "m1", "orders", "audit")
    one.join()
    settle(one)
    desk.ask(alter("empty", orders={0: 5}), 0)
    desk.ask(ConsumerGroupHeartbeatRequest("c", "c", 0, None, None, 60_000, ("orders",), None, None, []), 1)
    return desk


@pytest.mark.parametrize(
    ("request_", "denied", "code", "text"),
    [
        (beat("g", "m", 0, "orders"), (READ, GROUP, "g"), ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
        (
            beat("g", "m", 0, "orders", "audit"),
            (DESCRIBE, TOPIC, "audit"),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            None,
        ),
        (beat("", "m", 0, "orders"), None, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        (beat(" ", "m", 0, "orders"), None, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        (beat("g", "m", 0, "orders", rack=" "), None, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        (beat("none", "m", 1), None, ErrorCode.GROUP_ID_NOT_FOUND, "Share group none not found."),
        (beat("none", "m", -1), None, ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (beat("c", "m", 0, "orders"), None, ErrorCode.GROUP_ID_NOT_FOUND, "Group c is not a share group."),
        (beat("c", "c", -1), None, ErrorCode.GROUP_ID_NOT_FOUND, "Group c is not a share group."),
        (beat("g", "m", 1), None, ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g."),
        (beat("g", "m", -1), None, ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g."),
        (
            beat("g", "m1", 2),
            None,
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The share group member has a smaller member epoch (2) than the one known by the group "
            "coordinator (4), and it does not match the previous member epoch (3). The member must abandon "
            "all its partitions and rejoin.",
        ),
        (
            beat("g", "m1", 5),
            None,
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The share group member has a greater member epoch (5) than the one known by the group "
            "coordinator (4). The member must abandon all its partitions and rejoin.",
        ),
    ],
)
def test_a_heartbeat_is_refused(request_: Any, denied: Denied | None, code: ErrorCode, text: str) -> None:
    desk = busy()
    desk.heartbeat("m1", 3, ("orders",))
    count = len(desk.logs[0])
    assert said(desk.ask_denied(request_, 1, *([denied] if denied else []))) == (code, text)
    assert len(desk.logs[0]) == count


NOT_EMPTY = ErrorCode.NON_EMPTY_GROUP, "The group is not empty."
NO_ID = ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID.message
OTHER_KIND = ErrorCode.GROUP_ID_NOT_FOUND, "Group c is not a share group."
NOT_ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED.message
NOTHING = "There is no offset information to delete."


@pytest.mark.parametrize(
    ("request_", "denied", "expected"),
    [
        (alter("g", orders={0: 1}), None, NOT_EMPTY),
        (alter("", orders={0: 1}), None, NO_ID),
        (alter("c", orders={0: 1}), None, OTHER_KIND),
        (alter("empty", orders={0: 1}), (READ, GROUP, "empty"), NOT_ALLOWED),
        (delete("g", "orders"), None, NOT_EMPTY),
        (delete("", "orders"), None, NO_ID),
        (delete("c", "orders"), None, OTHER_KIND),
        (delete("none", "orders"), None, (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")),
        (delete("empty", "orders"), (DELETE, GROUP, "empty"), NOT_ALLOWED),
    ],
)
def test_offsets_are_neither_altered_nor_deleted(
    request_: Any, denied: Denied | None, expected: Said
) -> None:
    desk = busy()
    count = len(desk.logs[0])
    answer = desk.ask_denied(request_, 0, *([denied] if denied else []))
    assert (said(answer), answer.responses) == (expected, [])
    assert len(desk.logs[0]) == count


def test_each_api_refuses_without_the_log_the_partition_or_the_feature() -> None:
    desk = busy()
    requests = beat("g", "m", 0, "orders"), alter("empty", orders={0: 1}), delete("empty", "orders")
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answers = [said(desk.ask(request, 1)) for request in requests]
    assert answers == [(code, None), (code, code.message), (code, code.message)]
    desk.step(PartitionResigned(0))
    code = ErrorCode.NOT_COORDINATOR
    answers = [said(desk.ask(request, 1)) for request in requests]
    assert answers == [(code, None), (code, code.message), (code, code.message)]
    desk.coordinator.share.version = 0
    code = ErrorCode.UNSUPPORTED_VERSION
    denied = [(operation, GROUP, "g") for operation in (READ, DELETE)]
    answers = [said(desk.ask_denied(request, 1, *denied)) for request in requests]
    assert answers == [(code, None), (code, code.message), (code, code.message)]


def test_topics_that_may_not_be_read_are_refused_beside_others__kip932() -> None:
    desk = busy()
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = alter("empty", secret={1: 1}, audit={4: 9, 0: 8}, none={2: 2}, orders={0: 7, 2: 6})
    answer = desk.ask_denied(asked, 0, (READ, TOPIC, "audit"))
    assert said(answer) == (0, None)
    assert [
        (topic.topic_name, [(row.partition_index, *said(row)) for row in topic.partitions])
        for topic in answer.responses
    ] == [
        ("secret", [(1, unknown, unknown.message)]),
        ("audit", [(4, denied, denied.message), (0, denied, denied.message)]),
        ("none", [(2, unknown, unknown.message)]),
        ("orders", [(0, 0, None), (2, unknown, unknown.message)]),
    ]
    assert answer.responses[1].topic_id == desk.topics.topic_id("audit")
    answer = desk.ask_denied(delete("empty", "audit", "orders", "none"), 0, (READ, TOPIC, "audit"))
    assert said(answer) == (0, None)
    assert [(topic.topic_name, *said(topic)) for topic in answer.responses] == [
        ("audit", denied, denied.message),
        ("orders", 0, None),
        ("none", unknown, unknown.message),
    ]
    answer = desk.ask_denied(delete("empty", "orders"), 0, (DESCRIBE, TOPIC, "orders"))
    assert [said(topic) for topic in answer.responses] == [(unknown, NOTHING)]


def described(desk: ShareDesk, *groups: str, denied: Denied | None = None) -> list[Any]:
    request = ShareGroupDescribeRequest(groups)
    return list(desk.ask_denied(request, 1, *([denied] if denied else [])).groups)


def test_each_group_has_its_own_refusal_and_those_that_are_denied_come_first() -> None:
    desk = busy()
    rows = described(desk, "", "none", "c", "g", "empty", denied=(DESCRIBE, GROUP, "empty"))
    assert [(one.group_id, *said(one)) for one in rows] == [
        ("empty", ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("c", ErrorCode.GROUP_ID_NOT_FOUND, "Group c is not a share group."),
        ("g", 0, None),
    ]
    (row,) = described(desk, "g", denied=(DESCRIBE, TOPIC, "audit"))
    assert (row.group_id, *said(row)) == ("g", ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN)
    assert row.members == []
    desk.step(PartitionResigned(0))
    (row,) = described(desk, "g")
    assert (row.group_id, *said(row)) == (
        "g",
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_COORDINATOR.message,
    )
    desk.coordinator.share.version = 0
    rows = described(desk, "", "g", denied=(DESCRIBE, GROUP, "g"))
    assert [(one.group_id, *said(one)) for one in rows] == [
        ("", ErrorCode.UNSUPPORTED_VERSION, None),
        ("g", ErrorCode.UNSUPPORTED_VERSION, None),
    ]
