"""Members that join a new group together wait for each other, and share its first target."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.assignors.spec import AssignorFailed
from kraftd.groups.consumer.gathering import ALONE_MS, ANSWERED_A_SLICE, MOST_MS, QUIET_MS, TARGET_MS
from kraftd.groups.events import PartitionResigned
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.calls import counted_steps
from tests.groups.consumer.members import (
    DESCRIBE,
    HEARTBEAT,
    Consumer,
    heartbeat,
    joining,
    partitions,
    settle,
)
from tests.groups.desk import Desk
from tests.groups.requests import JOIN, join

MEMBERS, PARTITIONS = 1_000, 1_000
MAX_CALLS = 8_000


def send(desk: Desk, *members: str, **more: Any) -> list[int]:
    return [desk.send(joining(member, **more), HEARTBEAT) for member in members]


def answers(desk: Desk, numbers: list[int]) -> list[Any]:
    return [desk.answers.get(number) for number in numbers]


def test_members_that_join_together_share_the_first_target__kip848() -> None:
    desk = Desk(orders=4)
    sent = send(desk, "m1")
    desk.wait(ALONE_MS - 1)
    sent += send(desk, "m2")
    desk.wait(QUIET_MS - 1)
    sent += send(desk, "m3")
    desk.wait(QUIET_MS - 1)
    assert answers(desk, sent) == [None] * 3
    desk.wait(1)
    found = answers(desk, sent)
    assert {one.member_epoch for one in found} == {4}
    parts = [(partitions(one) or {}).get(desk.topics.topic_id("orders") or b"", []) for one in found]
    assert sorted(map(len, parts)) == [1, 1, 2] and sorted(chain(*parts)) == [0, 1, 2, 3]
    group = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups[0]
    assert (group.group_state, len(group.members)) == ("Stable", 3)
    desk.reload()
    assert desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups[0].group_state == "Stable"


def test_a_member_that_stays_alone_waits_for_milliseconds_and_writes_one_batch() -> None:
    desk = Desk(orders=4)
    (sent,) = send(desk, "m1")
    assert not desk.records()
    desk.wait(ALONE_MS)
    assert partitions(desk.answers[sent]) == {desk.topics.topic_id("orders"): [0, 1, 2, 3]}
    assert [type(record.key).__name__.removeprefix("ConsumerGroup") for record in desk.records()] == [
        "MemberMetadataKey",
        "MetadataKey",
        "TargetAssignmentMemberKey",
        "TargetAssignmentMetadataKey",
        "CurrentMemberAssignmentKey",
    ]


def test_members_that_keep_coming_hold_up_the_first_ones_for_a_second_at_most() -> None:
    desk = Desk(orders=4)
    sent, came = send(desk, "m0"), 1
    while desk.answers.get(sent[0]) is None:
        desk.wait(ALONE_MS - 1)
        send(desk, f"m{came}")
        came += 1
        assert came <= MOST_MS // (ALONE_MS - 1) + 2
    assert came >= MOST_MS // ALONE_MS


@pytest.mark.parametrize(
    "more",
    [{"instance": "i1"}, {"regex": "ord.*", "topics": None}, {"regex": "aud.*"}],
    ids=["static", "pattern", "pattern and names"],
)
def test_others_do_not_wait(more: dict[str, Any]) -> None:
    desk = Desk(orders=4)
    assert desk.answers.get(*send(desk, "m1", **more)) is not None
    assert desk.answers.get(*send(desk, "m2")) is not None, "the group is there"


def test_a_member_whose_id_the_coordinator_makes_does_not_wait() -> None:
    desk = Desk(orders=4)
    assert desk.answers.get(desk.send(joining(""), 0)) is not None


def test_a_group_that_has_become_empty_is_new_again_once_a_target_may_be_computed() -> None:
    desk = Desk(orders=4)
    for waits, interval_ms in ((True, 999), (False, 1_000), (True, 1_000)):
        (sent,) = send(desk, "m1")
        assert (desk.answers.get(sent) is None) is waits
        desk.wait(ALONE_MS)
        desk.ask(heartbeat("m1", -1), HEARTBEAT)
        desk.wait(interval_ms - ALONE_MS)


def test_a_member_that_comes_while_the_others_are_answered_does_not_wait() -> None:
    desk = Desk(orders=4)
    sent = send(desk, *(f"m{number}" for number in range(3 * ANSWERED_A_SLICE)))
    desk.wait(QUIET_MS)
    assert answers(desk, sent).count(None) == 2 * ANSWERED_A_SLICE
    assert desk.answers.get(*send(desk, "late")) is not None
    desk.wait(2)
    assert None not in answers(desk, sent)


def test_no_interval_of_targets_means_no_wait() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4)
    assert desk.answers.get(*send(desk, "m1")) is not None


def test_a_classic_group_becomes_another_at_once() -> None:
    desk = Desk(orders=4)
    desk.send(join(), JOIN)
    assert desk.answers.get(*send(desk, "m1")) is not None


def test_a_member_that_leaves_meanwhile_is_not_added_again() -> None:
    desk = Desk(orders=4)
    sent = send(desk, "m1", "m2")
    assert desk.ask(heartbeat("m2", -1), HEARTBEAT).error_code == 0
    desk.wait(QUIET_MS)
    assert [one.error_code for one in answers(desk, sent)] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    members = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups[0].members
    assert [one.member_id for one in members] == ["m1"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_coordinator_that_moves_refuses_those_that_wait(count: int) -> None:
    desk = Desk(orders=4)
    sent = send(desk, *(f"m{number}" for number in range(count)))
    desk.step(PartitionResigned(0))
    assert [one.error_code for one in answers(desk, sent)] == [ErrorCode.NOT_COORDINATOR] * count
    desk.wait(2 * QUIET_MS)


def test_an_append_that_fails_refuses_its_member_alone() -> None:
    desk = Desk(orders=4)
    sent = send(desk, "m1", "m2")
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    sent += send(desk, "m3")
    desk.failure = None
    desk.wait(QUIET_MS)
    codes = [one.error_code for one in answers(desk, sent)]
    assert codes == [0, 0, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert sum(len((partitions(one) or {}).popitem()[1]) for one in answers(desk, sent)[:2]) == 4


def test_a_full_group_refuses_whom_it_has_no_room_for() -> None:
    desk = Desk(GroupConfig(group_consumer_max_size=2), orders=4)
    sent = send(desk, "m1", "m2", "m3")
    desk.wait(QUIET_MS)
    codes = [one.error_code for one in answers(desk, sent)]
    assert codes == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_thousand_members_have_their_parts_with_their_first_answers_in_small_steps() -> None:
    desk = Desk(orders=PARTITIONS)
    coordinator: Any = desk.coordinator
    steps = counted_steps(coordinator)
    sent = send(desk, *(f"m{number}" for number in range(MEMBERS)))
    desk.wait(2 * QUIET_MS + 2 * MEMBERS // ANSWERED_A_SLICE)
    for one in answers(desk, sent):
        assert [len(rows) for rows in (partitions(one) or {}).values()] == [1]
    assert max(max(counted.calls) for counted in steps) < MAX_CALLS


@pytest.mark.parametrize("fails", [True, False])
def test_members_wait_for_a_custom_assignor_and_no_longer_than_a_second(fails: bool) -> None:
    def assign(spec: Any) -> Any:
        yield 50
        if fails:
            raise AssignorFailed("it has no opinion")
        return {next(iter(spec.members)): {topic_id: {0} for topic_id in spec.partition_counts}}

    own = {"own": Custom("own", assign, lambda *_: None)}
    desk = Desk(GroupConfig(group_consumer_assignors=list(own), assignors=own), orders=4)
    sent = send(desk, "m1")
    desk.wait(ALONE_MS + 40)
    assert answers(desk, sent) == [None]
    desk.wait(TARGET_MS - 41)
    assert (answers(desk, sent) == [None]) is fails
    desk.wait(1)
    assert (partitions(desk.answers[sent[0]]) == {desk.topics.topic_id("orders"): [0]}) is not fails


def test_they_move_on_like_all_others() -> None:
    desk = Desk(orders=4)
    consumers = [Consumer(lambda *_: None, f"m{number}") for number in range(2)]
    sent = send(desk, "m0", "m1")
    desk.wait(QUIET_MS)
    for number, one in zip(sent, consumers, strict=True):
        one.take(desk.answers[number])
        one.ask = desk.ask
    desk.wait(1_000)
    third = Consumer(desk.ask, "m2")
    third.join()
    settle(*consumers, third)
    assert sorted(one.count() for one in (*consumers, third)) == [1, 1, 2]
