"""ConsumerGroupDescribe: groups that are there, and why others are not described."""

from __future__ import annotations

from typing import Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.events import PartitionResigned
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import DESCRIBE, Consumer, settle
from tests.groups.desk import Desk
from tests.groups.requests import JOIN, join


def described(desk: Desk, *groups: str, denied: tuple[AclResourceType, str] | None = None) -> list[Any]:
    """The rows for a caller that may not describe one resource."""

    def allows(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        assert operation is AclOperation.DESCRIBE
        return (kind, name) != denied

    desk.calls += 1
    call = Call(desk.calls, DESCRIBE, "client", "/127.0.0.1", allows)
    desk.perform(desk.coordinator.handle(call, ConsumerGroupDescribeRequest(groups), desk.now_ms))
    return list(desk.answers[desk.calls].groups)


def test_each_group_has_its_own_refusal_and_those_that_are_denied_come_first() -> None:
    desk = Desk(orders=4)
    Consumer(desk.ask, "m1").join()
    desk.send(join("classic"), JOIN)
    groups = ("", "none", "classic", "g", "hidden")
    rows = described(desk, *groups, denied=(AclResourceType.GROUP, "hidden"))
    assert [(one.group_id, one.error_code, one.error_message) for one in rows] == [
        ("hidden", ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
        ("g", 0, None),
    ]
    desk.step(PartitionResigned(0))
    assert [one.error_code for one in described(desk, "g")] == [ErrorCode.NOT_COORDINATOR]
    desk.coordinator.group_version = 0
    assert [one.error_code for one in described(desk, "g", "")] == [ErrorCode.UNSUPPORTED_VERSION] * 2


def test_a_group_with_a_topic_that_the_caller_may_not_describe_is_refused() -> None:
    desk = Desk(orders=4, audit=2)
    Consumer(desk.ask, "m1", topics=("audit", "orders")).join()
    (row,) = described(desk, "g", denied=(AclResourceType.TOPIC, "audit"))
    assert (row.group_id, row.error_code, row.members) == ("g", ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    text = "The group has described topic(s) that the client is not authorized to describe."
    assert row.error_message == text
    desk.topics.change("audit", None)
    (row,) = described(desk, "g", denied=(AclResourceType.TOPIC, "audit"))
    assert row.error_code == 0
    (member,) = row.members
    (orders,) = member.assignment.topic_partitions
    expected = desk.topics.topic_id("orders"), "orders", (0, 1, 2, 3)
    assert (orders.topic_id, orders.topic_name, tuple(sorted(orders.partitions))) == expected


def test_a_member_has_what_it_is_to_give_up_until_it_has_given_it_up() -> None:
    desk = Desk(orders=4)
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    desk.wait(1_000)
    second.join()
    first.beat()
    (row,) = described(desk, "g")
    rows = {one.member_id: one for one in row.members}
    has = [sorted(topic.partitions) for topic in rows["m1"].assignment.topic_partitions]
    wanted = [len(topic.partitions) for topic in rows["m1"].target_assignment.topic_partitions]
    assert (has, wanted, row.group_state) == ([[0, 1, 2, 3]], [2], "Reconciling")
    assert rows["m2"].assignment.topic_partitions == []
    settle(first, second)
    (row,) = described(desk, "g")
    assert row.group_state == "Stable" and (row.group_epoch, row.assignment_epoch) == (3, 3)
    facts = [(one.client_id, one.client_host, one.member_epoch, one.member_type) for one in row.members]
    assert facts == [("client", "/127.0.0.1", 3, 1)] * 2
    assert row.assignor_name == "uniform"
