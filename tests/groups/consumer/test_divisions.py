"""Which heartbeats have their division made before, and when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.ground.pace import at_once
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import divisions, reconciling
from kraftd.groups.consumer.divisions import Divided, divide, large_step
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import MemberState
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.groups.records import encode_value
from tests.groups.consumer.members import Consumer, heartbeat, joining
from tests.groups.desk import Desk
from tests.groups.requests import JOIN, join

ORDERS = 8


@pytest.fixture(autouse=True)
def _three_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "MANY", 3)


@pytest.fixture
def desk() -> Desk:
    """A group in which `m1` has everything, half of which `m2` is to have."""
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=ORDERS, audit=1)
    for name in ("m1", "m2"):
        Consumer(desk.ask, name, instance=f"i-{name}").join()
    return desk


def state_of(desk: Desk) -> Any:
    return desk.coordinator.shards[0].state


def group_of(desk: Desk) -> ConsumerGroup:
    group = state_of(desk).groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def step_of(desk: Desk, member: str = "m1", epoch: int = 2, **more: Any) -> Reconciling:
    step = large_step(state_of(desk), heartbeat(member, epoch, **more))
    assert step is not None
    return step


def settle(desk: Desk) -> None:
    for _ in range(3):
        for member in list(group_of(desk).members.values()):
            owned = {topic_id: list(had) for topic_id, had in member.assigned.items()}
            request = heartbeat(member.member_id, member.epoch, instance=member.instance_id, owned=owned)
            assert desk.ask(request, 1).error_code == 0


def test_a_step_is_that_of_the_heartbeat_s_member_and_its_target(desk: Desk) -> None:
    group, request = group_of(desk), heartbeat("m1", 2, owned={desk.topics.topic_id("orders") or b"": [0]})
    step = large_step(state_of(desk), request)
    assert step is not None
    assert step.member is group.members["m1"] and step.target is group.target("m1")
    assert (step.target_epoch, step.owners, step.owned) == (3, group.owners, request.topic_partitions)
    assert not step.has_new_subscription
    assert step_of(desk, "m1", 0).member.member_id == "m1"
    assert step_of(desk, "m2").member.member_id == "m2"


def test_other_heartbeats_have_none(desk: Desk) -> None:
    desk.ask(join(group="classic"), JOIN)
    for request in (
        heartbeat("m1", -1),
        heartbeat("m3", 0),
        heartbeat("m1", 2, group="none"),
        heartbeat("", 2, group="classic"),
        heartbeat("m3", 2, instance="i-m3"),
    ):
        assert large_step(state_of(desk), request) is None
    few = Consumer(desk.ask, "m9", topics=("audit",), group="few")
    few.join()
    assert large_step(state_of(desk), heartbeat("m9", 1, group="few")) is None
    settle(desk)
    assert group_of(desk).members["m1"].is_reconciled_to(3)
    assert large_step(state_of(desk), heartbeat("m1", 3)) is None


def test_a_static_member_has_one_for_its_successor_and_none_where_it_is_to_be(desk: Desk) -> None:
    settle(desk)
    state, holder = state_of(desk), group_of(desk).members["m1"]
    assert large_step(state, heartbeat("m1", 3, instance="i-m1")) is None
    step = large_step(state, joining("s1", instance="i-m1"))
    assert step is not None and step.member == holder
    Consumer(desk.ask, "m3").join()
    assert step_of(desk, "other", 3, instance="i-m1").member is holder


@pytest.mark.parametrize(
    ("request_", "topics"),
    [
        ({}, {"orders"}),
        ({"topics": ("audit",)}, {"audit"}),
        ({"topics": ("audit",), "regex": "o.*"}, {"audit", "orders"}),
        ({"regex": "o.*"}, {"orders"}),
        ({"regex": "a.*"}, {"orders", "audit"}),
        ({"topics": ()}, set()),
    ],
)
def test_a_step_has_the_subscription_of_the_request(request_: dict[str, Any], topics: set[str]) -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=ORDERS, audit=1)
    for name, regex in (("m1", "o.*"), ("m2", "a.*")):
        member = Consumer(desk.ask, name, regex=regex)
        member.join()
    desk.wait(10_010)
    member.beat()  # the second pattern came too soon after the first
    desk.wait(10)
    group_of(desk).members["m1"] = replace(group_of(desk).members["m1"], regex="")
    step = step_of(desk, **request_)
    subscribed = {name for name in ("orders", "audit") if desk.topics.topic_id(name) in step.topic_ids}
    assert subscribed == topics
    assert step.member.topics == set(request_.get("topics", ("orders",)))
    assert step.member.regex == request_.get("regex", "")
    group_of(desk).members["m1"] = replace(group_of(desk).members["m1"], regex="a.*")
    assert step_of(desk).member.regex == step_of(desk, topics=("orders",)).member.regex == "a.*"


def test_a_division_has_the_record_of_the_step_that_follows(desk: Desk) -> None:
    step = step_of(desk)
    divided = Divided(step)
    at_once(divided.make())
    assert divided.division == at_once(step.divide())
    stepped = step.next()
    assert stepped.state is MemberState.UNREVOKED_PARTITIONS
    record = divided.record("g", replace(stepped, client_id="another", topics=frozenset("t")))
    assert record.encoded is not None and record.value is not None
    assert record.encoded == encode_value(record.value, record.version)
    other = divided.record("g", replace(stepped, epoch=7))
    assert (other.encoded, other.key) == (None, record.key)
    assert other.value is not None and other.value.member_epoch == 7  # type: ignore[attr-defined]


def test_a_division_without_a_step_has_no_record(desk: Desk) -> None:
    settle(desk)
    member = group_of(desk).members["m1"]
    still = Reconciling(member, 3, *step_inputs(desk))
    unknown = replace(still, member=replace(member, state=MemberState.UNKNOWN))
    for step in (still, unknown):
        divided = Divided(step)
        at_once(divided.make())
        assert divided.division == at_once(step.divide())
        record = divided.record("g", member)
        assert record.encoded is None and record.value is not None


def step_inputs(desk: Desk) -> Any:
    group = group_of(desk)
    step = large_step(state_of(desk), joining("s1", instance="i-m1"))
    assert step is not None
    return group.target("m1"), step.topic_ids, False, group.owners


def test_a_division_counts_while_what_it_was_made_of_is_the_same(desk: Desk) -> None:
    step = step_of(desk)
    divided, target = Divided(step), dict(step.target)
    (topic_id,) = target
    assert divided.is_of(step_of(desk))
    assert divided.is_of(step_of(desk, owned={topic_id: []}))  # what is reported decides only later
    assert not divided.is_of(replace(step, target_epoch=4))
    assert not divided.is_of(replace(step, target={topic_id: frozenset(sorted(target[topic_id]))}))
    assert not divided.is_of(replace(step, target={**target, bytes(16): frozenset((0,))}))
    assert not divided.is_of(step_of(desk, topics=("audit",)))
    desk.topics.change("audit", 2)
    assert not divided.is_of(step_of(desk))


def test_a_division_is_made_anew_a_few_times_and_given_up_if_there_is_no_step(desk: Desk) -> None:
    step = step_of(desk)
    others = [replace(step, target_epoch=epoch) for epoch in range(20)]

    def made(*steps: Reconciling | None) -> tuple[Divided | None, int]:
        rest: Iterator[Reconciling | None] = iter(steps)
        return at_once(divide(lambda: next(rest))), len(list(rest))

    divided, left = made(step, step, step)
    assert divided is not None and divided.is_of(step) and left == 1
    divided, left = made(others[0], step, step, step)
    assert divided is not None and divided.is_of(step) and left == 0
    assert made(None, step, step) == (None, 2)
    divided, left = made(step, None, step)
    assert divided is not None and left == 1  # its heartbeat makes none
    assert made(*others) == (None, 20 - 2 * divisions.ATTEMPTS)
