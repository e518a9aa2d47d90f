"""Assignors from outside: what they return becomes the target, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest

from kraftd.groups import assigning
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors import ASSIGNORS, custom
from kraftd.groups.consumer.assignors.custom import Custom, called
from kraftd.groups.consumer.assignors.spec import AssignorFailed, GroupSpec, MemberSpec
from tests.groups.consumer.members import Consumer, settle
from tests.groups.consumer.random_groups import counted
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


def by_half(group: GroupSpec) -> dict[str, Any]:
    return {member_id: {one.topic_ids[0]: {0.5}} for member_id, one in group.members.items()}


def nothing_at_all(_: GroupSpec) -> None:
    return None


def broken(_: GroupSpec) -> dict[str, Any]:
    raise ValueError("a fault")


def desk_of(rule: Callable[[GroupSpec], Any]) -> tuple[Desk, list[str]]:
    failures: list[str] = []
    assignors = {
        "own": Custom("own", partial(called, rule), lambda group, why: failures.append(f"{group}: {why}"))
    }
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
        (of_another_topic, f"is not subscribed to topic {bytes(16).hex()}"),
        (beyond_the_end, "has no partition 4"),
        (to_everyone, "has two members, m"),
        (by_half, "'float' object cannot be interpreted as an integer"),
        (nothing_at_all, "it returned no partitions by member, but NoneType"),
        (broken, "ValueError('a fault')"),
    ],
)
def test_one_that_fails_leaves_the_last_target_and_is_asked_again_later(
    rule: Callable[[GroupSpec], Any], text: str
) -> None:
    rules = [everything_to_the_last]
    desk, failures = desk_of(lambda group: rules[-1](group))
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    desk.wait(20)
    settle(first)
    rules.append(rule)
    assert second.join().error_code == 0
    desk.wait(20)
    assert len(failures) == 1
    assert failures[0].startswith("g: ")
    assert text in failures[0]
    for _ in range(3):
        assert (first.beat().error_code, second.beat().error_code) == (0, 0)
        desk.wait(20)
    assert (first.count(), second.count(), len(failures)) == (4, 0, 1)
    rules.pop()
    desk.wait(assigning.RETRY_MS)
    first.beat()
    desk.wait(20)
    settle(first, second)
    assert (first.count(), second.count(), len(failures)) == (0, 4, 1)


def test_one_that_takes_long_holds_nothing_up() -> None:
    waits = [1000] * 30

    def slow(group: GroupSpec) -> Generator[int, None, dict[str, Any]]:
        while waits:
            yield waits.pop()
        return everything_to_the_last(group)

    desk, failures = desk_of(slow)
    first = Consumer(desk.ask, "m1")
    first.join()
    desk.wait(29_000)
    assert (first.beat().error_code, first.count(), len(waits)) == (0, 0, 1)
    desk.wait(2_010)
    settle(first)
    assert (first.count(), failures) == (4, [])


class Topics(tuple[bytes, ...]):
    """Topics that members share, and how often they were gone through."""

    seen = 0

    def __iter__(self) -> Iterator[bytes]:
        self.seen += 1
        return super().__iter__()


def test_what_it_returns_is_checked_with_pauses_and_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "PARTITIONS_A_SLICE", 4)
    one, two = bytes(15) + b"\1", bytes(15) + b"\2"
    topics = Topics((one, two))
    names = ("m1", "m2", "m3", "m4")
    group = GroupSpec({name: MemberSpec(None, topics, {}) for name in names}, True, {one: 20, two: 20})
    returned: dict[str, dict[bytes, Any]] = {
        "m1": {one: {0, 1, 2}, two: set()},
        "m2": {one: [3], two: {0, 1, 2}},  # a pause
        "m3": {two: {3, 4, 5, 6}},  # and another
    }
    assigned, pauses = counted(custom.checked(group, returned))
    assert pauses == 2
    assert assigned == {**returned, "m1": {one: {0, 1, 2}}, "m2": {one: {3}, two: {0, 1, 2}}}
    assert assigned["m3"][two] is not returned["m3"][two]
    assert topics.seen == 1
    with pytest.raises(AssignorFailed) as failed:
        counted(custom.checked(group, {**returned, "m4": {two: {4}}}))
    assert str(failed.value) == f"partition 4 of topic {two.hex()} has two members, m3 and m4"
    with pytest.raises(AssignorFailed, match="has no partition -1"):
        counted(custom.checked(group, {"m1": {one: {-1}}}))
    assert repr(Custom("own", ASSIGNORS["range"], print)).startswith("<Custom own: <function assign_ranges")
