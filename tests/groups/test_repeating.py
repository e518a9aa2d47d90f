"""Heartbeats that are taken again without being handled, until something changes that they depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.groups.events import PartitionResigned
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import HEARTBEAT, Consumer, heartbeat
from tests.groups.desk import Desk
from tests.groups.requests import BEAT, JOIN, beat, commit, join, leave, stable_group
from tests.groups.requests import LEAVE as LEAVING

SESSION_MS = 45_000


def repeated(desk: Desk) -> Any:
    """What takes the last heartbeat of the only member again."""
    ((_, _, found),) = desk.last.values()
    return found


def of_consumer(desk: Desk) -> Any:
    one = Consumer(desk.ask, "m1", instance="i1")
    one.join()
    desk.ask(heartbeat("m1", one.epoch, instance="i1"), HEARTBEAT)
    return repeated(desk)


def test_a_repeated_heartbeat_is_a_sign_of_life() -> None:
    desk = Desk()
    found = of_consumer(desk)
    desk.ask(heartbeat("m1", 2, instance="i1"), HEARTBEAT)
    assert desk.repeated_count == 1
    for _ in range(4):
        desk.wait(SESSION_MS - 1)
        assert found(desk.now_ms)
    desk.wait(SESSION_MS)
    assert not found(desk.now_ms)
    classic = Desk()
    (name,) = stable_group(classic, 1)
    classic.ask(beat(1, name), BEAT)
    for _ in range(4):
        classic.wait(9_999)
        assert repeated(classic)(classic.now_ms)
    classic.wait(10_000)
    assert classic.ask(beat(1, name), BEAT).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not repeated(classic)(classic.now_ms)


def new_holder(desk: Desk) -> None:
    desk.ask(heartbeat("m1", -2, instance="i1"), HEARTBEAT)
    Consumer(desk.ask, "m2", instance="i1").join()


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.topics.change("orders", 7),
        lambda desk: desk.topics.configure("g", {"consumer.session.timeout.ms": "50000"}),
        lambda desk: Consumer(desk.ask, "m2").join(),
        new_holder,
        lambda desk: desk.ask(heartbeat("m1", -1, instance="i1"), HEARTBEAT),
        lambda desk: desk.step(PartitionResigned(0)),
        lambda desk: setattr(desk.coordinator, "group_version", 0),
    ],
)
def test_what_changes_a_consumer_group_ends_repetitions(change: Callable[[Desk], object]) -> None:
    desk = Desk()
    found = of_consumer(desk)
    assert found(desk.now_ms)
    change(desk)
    assert not found(desk.now_ms)


@pytest.mark.parametrize(
    "change",
    [
        lambda desk, name: desk.send(join("g", ""), 3),
        lambda desk, name: desk.send(join("g", name), JOIN),
        lambda desk, name: desk.ask(leave((name, None)), LEAVING),
        lambda desk, name: desk.step(PartitionResigned(0)),
    ],
)
def test_what_changes_a_classic_group_ends_repetitions(change: Callable[[Desk, str], object]) -> None:
    desk = Desk()
    (name,) = stable_group(desk, 1)
    desk.ask(beat(1, name), BEAT)
    found = repeated(desk)
    assert found(desk.now_ms)
    change(desk, name)
    assert not found(desk.now_ms)
    desk.ask(beat(1, name), BEAT)
    assert repeated(desk) is found  # no other one was offered


def test_a_heartbeat_is_not_repeated_before_what_is_written_is_committed() -> None:
    desk = Desk()
    found = of_consumer(desk)
    desk.is_held = True
    desk.send(commit(5, group="other"), 9)
    assert not found(desk.now_ms)
    desk.release()
    assert found(desk.now_ms)


def test_a_group_with_patterns_or_more_to_do_is_not_repeated() -> None:
    desk = Desk()
    one = Consumer(desk.ask, "m1", regex="ord.*", topics=())
    one.join()
    desk.wait(10)
    one.beat()
    desk.ask(heartbeat("m1", one.epoch), HEARTBEAT)
    assert not desk.last
