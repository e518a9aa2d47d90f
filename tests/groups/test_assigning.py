"""Targets that are computed and written in slices: when one may begin, where it pauses, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftd.groups import assigning, modern_group
from kraftd.groups.assigning import ASSIGNING, RETRY_MS, assign_later, is_large, may_assign
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, Waits
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import target_epoch_record, target_record
from kraftd.groups.effects import AppendMarker, AppendRecords
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from tests.groups.desk import Desk

T = b"t" * 16


def state_of(desk: Desk) -> ShardState:
    state = desk.coordinator.shards[0].state
    state.now_ms = desk.now_ms
    return state


def group_in(desk: Desk, *names: str) -> ConsumerGroup:
    state = state_of(desk)
    group = ConsumerGroup("g", state.timeline)
    state.timeline.put(state.groups, "g", group)
    for name in names:
        group.put(Member(name, topics=frozenset(("orders", "none"))))
    return group


class Writing:
    """A plan with targets of these many partitions. waits: between the slices in which it is computed."""

    def __init__(self, group: ConsumerGroup, sizes: dict[str, int], waits: tuple[Any, ...] = ()) -> None:
        self.group, self.sizes, self.waits = group, sizes, waits
        self.fails = False

    def compute(self) -> Waits[Assigned]:
        yield from self.waits
        if self.fails:
            raise AssignorFailed("it has no opinion")
        return {name: {T: frozenset(range(size))} for name, size in self.sizes.items()}

    def records(self, assigned: Assigned, computed_ms: int) -> Iterator[CoordinatorRecord]:
        for name, partitions in assigned.items():
            yield target_record("g", name, partitions)
        yield target_epoch_record("g", 7, computed_ms)


def batches(desk: Desk) -> list[int]:
    """How many records each batch gets from now on."""
    sizes: list[int] = []
    append = desk.append

    def counted(effect: AppendRecords | AppendMarker) -> None:
        assert isinstance(effect, AppendRecords)
        sizes.append(len(effect.records))
        append(effect)

    desk.append = counted  # type: ignore[method-assign]
    return sizes


def written(sizes: list[int]) -> list[int]:
    """How many records each batch has of a target with these many partitions for each member."""
    desk = Desk()
    names = [f"m{number}" for number in range(len(sizes))]
    group = group_in(desk, *names)
    found = batches(desk)
    assign_later(state_of(desk), "g", lambda: Writing(group, dict(zip(names, sizes, strict=True))))
    desk.wait(20)
    assert [len(group.targets[name][T]) for name in names] == sizes and group.facts.target_epoch == 7
    return found


@pytest.mark.parametrize(
    ("since_ms", "now_ms", "interval_ms", "may"),
    [
        (0, 5, 10, True),
        (1, 5, 10, False),
        (100, 100, 0, True),
        (100, 100, 1, False),
        (100, 109, 10, False),
        (100, 110, 10, True),
        (100, 99, 10, True),
    ],
)
def test_a_target_may_be_computed_once_the_last_one_is_old_enough(
    since_ms: int, now_ms: int, interval_ms: int, may: bool
) -> None:
    desk = Desk()
    state, group = state_of(desk), group_in(desk)
    state.now_ms = now_ms
    group.set_facts(target_ms=since_ms)
    assert may_assign(state, group, interval_ms) is may
    state.deadlines.schedule((ASSIGNING, "g"), now_ms, lambda: None)  # type: ignore[arg-type, return-value]
    assert not may_assign(state, group, interval_ms)


@pytest.mark.parametrize(
    ("most", "partitions", "expected"),
    [(6, 4, False), (5, 4, True), (4, 1, False), (3, 1, True), (2, 0, True), (4, 2, False)],
)
def test_members_with_their_partitions_and_topics_make_a_group_large(
    most: int, partitions: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "AT_ONCE", most)
    desk = Desk(orders=partitions)
    assert is_large(state_of(desk), group_in(desk, "m1", "m2")) is expected


def test_slices_follow_one_another_by_the_millisecond_or_as_they_ask() -> None:
    desk = Desk()
    state, group = state_of(desk), group_in(desk, "m1")
    begin_ms = desk.now_ms
    assign_later(state, "g", lambda: Writing(group, {"m1": 3}, (None, 20, None)))
    due = []
    while (due_ms := state.deadlines.next_ms()) is not None and (ASSIGNING, "g") in state.deadlines:
        due.append(due_ms - begin_ms)
        desk.wait(due_ms - desk.now_ms)
    assert due == [1, 2, 3, 23, 24, 25]
    assert group.targets == {"m1": {T: {0, 1, 2}}}
    assert (group.facts.target_epoch, group.facts.target_ms) == (7, begin_ms + 24)


def test_a_plan_that_is_none_or_fails_leaves_the_last_target() -> None:
    desk = Desk()
    state, group = state_of(desk), group_in(desk, "m1")
    assign_later(state, "g", lambda: None)
    desk.wait(1)
    assert (ASSIGNING, "g") not in state.deadlines
    failing = Writing(group, {"m1": 3})
    failing.fails = True
    state.now_ms = desk.now_ms
    assign_later(state, "g", lambda: failing)
    desk.wait(RETRY_MS + 1)
    assert (ASSIGNING, "g") in state.deadlines
    desk.wait(1)
    assert (ASSIGNING, "g") not in state.deadlines and not group.targets


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], [1]),
        ([1], [2]),
        ([1, 1], [3]),
        ([1, 1, 1], [3, 1]),
        ([2, 1, 1], [3, 1]),
        ([3, 1], [3]),
        ([4, 1], [2, 1]),
        ([1] * 5, [3, 3]),
        ([9, 9], [1, 1, 1]),
        ([1, 2, 9, 1], [3, 2]),
    ],
)
def test_a_target_is_written_by_records_and_partitions(
    sizes: list[int], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice has three records, that of the epoch among them; four partitions of a member count as one."""
    monkeypatch.setattr(assigning, "RECORDS_A_SLICE", 3)
    monkeypatch.setattr(assigning, "PARTITIONS_A_RECORD", 4)
    assert written(sizes) == expected


@pytest.mark.parametrize(("sizes", "expected"), [([4, 4], [3]), ([5, 1], [1, 2]), ([1, 5, 1], [1, 1, 2])])
def test_a_record_of_very_many_partitions_has_a_slice_for_itself(
    sizes: list[int], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "PARTITIONS_A_SLICE", 4)
    assert written(sizes) == expected


def test_the_records_of_a_slice_may_go_into_several_batches() -> None:
    desk = Desk(GroupConfig(max_batch_bytes=400))
    names = [f"m{number}" for number in range(20)]
    group = group_in(desk, *names)
    found = batches(desk)
    assign_later(state_of(desk), "g", lambda: Writing(group, dict.fromkeys(names, 4)))
    desk.wait(20)
    assert len(found) > 1 and sum(found) == 21
    assert len(group.targets) == 20 and group.facts.target_epoch == 7


@pytest.mark.parametrize("waited_ms", [2, 4])
def test_a_group_that_is_another_one_meanwhile_gets_no_target(
    waited_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "RECORDS_A_SLICE", 1)
    desk = Desk()
    state, former = state_of(desk), group_in(desk, "m1", "m2")
    assign_later(state, "g", lambda: Writing(former, {"m1": 1, "m2": 1}, (None,)))
    desk.wait(waited_ms)
    assert (ASSIGNING, "g") in state.deadlines
    group = group_in(desk, "m1", "m2")
    desk.wait(20)
    assert group.targets == {} and group.facts.target_epoch == 1
    assert (ASSIGNING, "g") not in state.deadlines


def test_members_that_leave_meanwhile_get_no_target() -> None:
    desk = Desk()
    group = group_in(desk, "m1")
    assign_later(state_of(desk), "g", lambda: Writing(group, {"m1": 1, "gone": 1}))
    desk.wait(20)
    assert list(group.targets) == ["m1"] and group.facts.target_epoch == 7


# What groups note


def test_topics_are_compared_once_by_metadata_and_anew_if_that_is_lost() -> None:
    group = ConsumerGroup("g", Desk().coordinator.shards[0].state.timeline)
    assert group.has_expired() and group.needs_refresh(1)
    group.set_facts(epoch=5, metadata_hash=77)
    group.refreshed(1, 5)
    assert not group.has_expired() and not group.needs_refresh(1) and group.needs_refresh(2)
    group.changes_hash(2, lambda: 77)
    group.changes_hash(1, lambda: 78)
    assert not group.has_expired()
    group.changes_hash(2, lambda: 78)
    assert group.has_expired() and group.needs_refresh(1)
    group.refreshed(2, 6)
    assert group.has_expired() and group.needs_refresh(2), "the epoch could not be written"


@pytest.mark.parametrize(("most", "is_ordered"), [(2, True), (1, False)])
def test_members_of_small_groups_have_the_order_of_kafkas_table(
    most: int, is_ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modern_group, "MOST_ORDERED", most)
    group = ConsumerGroup("g", Desk().coordinator.shards[0].state.timeline)
    for name in ("stranger", "member-3"):
        group.put(Member(name))
    assert (group.member_ids() == ["member-3", "stranger"]) is is_ordered
