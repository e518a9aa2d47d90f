"""Assignors from outside: what they return becomes the target, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from kraftd.groups import assigning
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.assignors.spec import GroupSpec
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import HEARTBEAT, Consumer, joining, partitions, settle
from tests.groups.desk import Desk


def everything_to_the_last(group: GroupSpec) -> dict[str, Any]:
    """All partitions to the member with the last id."""
    last = max(group.members)
    topic_ids = group.members[last].topic_ids
    return {last: {topic_id: set(range(group.partition_counts[topic_id])) for topic_id in topic_ids}}


def in_slices(group: GroupSpec) -> Generator[None, None, dict[str, Any]]:
    for _ in group.members:
        yield
    return everything_to_the_last(group)


def to_a_stranger(group: GroupSpec) -> dict[str, Any]:
    return {member_id: {} for member_id in [*group.members, "stranger"]}


def to_everyone(group: GroupSpec) -> dict[str, Any]:
    return {member_id: {one.topic_ids[0]: {0}} for member_id, one in group.members.items()}


def of_another_topic(group: GroupSpec) -> dict[str, Any]:
    return {member_id: {bytes(16): {0}} for member_id in group.members}


def beyond_the_end(group: GroupSpec) -> dict[str, Any]:
    return {member_id: {one.topic_ids[0]: {4}} for member_id, one in group.members.items()}


def broken(_: GroupSpec) -> dict[str, Any]:
    raise ValueError("a fault")


def desk_of(rule: Callable[[GroupSpec], Any]) -> tuple[Desk, list[Exception]]:
    failures: list[Exception] = []
    assignors = {"own": Custom("own", rule, failures.append)}
    desk = Desk(
        GroupConfig(
            group_consumer_assignment_interval_ms=0,
            group_consumer_assignors=list(assignors),
            assignors=assignors,
        ),
        orders=4,
    )
    return desk, failures


@pytest.mark.parametrize("rule", [everything_to_the_last, in_slices])
@pytest.mark.parametrize("at_once", [1000, 0])
def test_its_target_is_the_group_s(
    rule: Callable[[GroupSpec], Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "AT_ONCE", at_once)
    desk, failures = desk_of(rule)
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    for member in (first, second):
        member.join()
        desk.wait(20)
        settle(first)
    settle(first, second)
    assert (first.count(), second.count()) == (0, 4)
    assert not failures


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (to_a_stranger, "there is no member stranger"),
        (of_another_topic, f"member m1 is not subscribed to topic {bytes(16).hex()}"),
        (beyond_the_end, "has no partition 4"),
        (broken, "ValueError"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    rule: Callable[[GroupSpec], Any], text: str
) -> None:
    desk, failures = desk_of(rule)
    answer = desk.ask(joining("m1"), HEARTBEAT)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message.startswith(
        "Failed to compute a new target assignment for epoch 2: assignor own: "
    )
    assert answer.error_message.endswith(text)
    assert len(failures) == 1
    assert not desk.logs[0]


def test_a_partition_of_two_members_is_refused_and_the_last_target_stays() -> None:
    desk, failures = desk_of(to_everyone)
    first = Consumer(desk.ask, "m1")
    assert list(partitions(first.join()).values()) == [[0]]
    answer = desk.ask(joining("m2"), HEARTBEAT)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "has two members, m" in answer.error_message
    assert first.beat().error_code == 0
    assert first.count() == 1
    assert len(failures) == 1


def test_one_that_fails_for_a_large_group_leaves_the_last_target(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, failures = desk_of(to_everyone)
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    monkeypatch.setattr(assigning, "AT_ONCE", 0)
    assert second.join().error_code == 0
    desk.wait(20)
    assert (first.beat().error_code, first.count(), second.count()) == (0, 1, 0)
    assert failures
