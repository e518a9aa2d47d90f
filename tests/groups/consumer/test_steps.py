"""A member's step towards its target, from each state, and what a step that was prepared depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.divisions import Divided
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.owners import MANY, Owners
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.groups.consumer.records import Resolved
from kraftd.groups.consumer.subscriptions import Subscription
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_heartbeat_request import TopicPartitions
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import KnownTopics

TOPICS = KnownTopics(orders=8, audit=4)
ORDERS, AUDIT = (TOPICS.topic_id(name) or b"" for name in ("orders", "audit"))
OTHER = b"other".rjust(16)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
Has = Mapping[bytes, Sequence[int]]
NOTHING: Has = {}


def epochs(has: Has, epoch: int = 4) -> dict[bytes, dict[int, int]]:
    return {topic: dict.fromkeys(some, epoch) for topic, some in has.items()}


def member(
    state: MemberState = STABLE, assigned: Has = NOTHING, revoking: Has = NOTHING, **more: Any
) -> Member:
    facts: dict[str, Any] = {"epoch": 5, "previous_epoch": 4, "topics": frozenset(("orders",)), **more}
    return Member("m1", state=state, assigned=epochs(assigned), revoking=epochs(revoking), **facts)


def step(
    before: Member,
    target: Has,
    owned: Has | None = None,
    *,
    epoch: int = 5,
    is_new: bool = False,
    others: Has = NOTHING,
) -> Reconciling:
    owners = Owners(Timeline())
    owners.change(None, before)
    owners.change(None, Member("m2", assigned=epochs(others)))
    wanted = {topic: frozenset(some) for topic, some in target.items()}
    subscription = Subscription(before, {"au.*": Resolved(frozenset(("audit",)), 1, 0)}, TOPICS)
    rows = None if owned is None else [TopicPartitions(topic, tuple(some)) for topic, some in owned.items()]
    return Reconciling(before, epoch, wanted, subscription, is_new, owners, rows)


def test_a_member_that_has_all_of_its_target_stays_itself() -> None:
    before = member(assigned={ORDERS: (0, 1)})
    assert step(before, {ORDERS: (0, 1)}).next() is before
    assert step(before, {ORDERS: (0, 1)}, is_new=True).next() is before


@pytest.mark.parametrize(
    ("owned", "state", "revoking"),
    [
        (None, UNREVOKED, {AUDIT: (0, 1)}),
        ({AUDIT: (1,)}, UNREVOKED, {AUDIT: (0, 1)}),
        ({ORDERS: (0,)}, STABLE, {}),
        ({}, STABLE, {}),
    ],
)
def test_topics_of_a_former_subscription_go_before_the_next_target(
    owned: Has | None, state: MemberState, revoking: Has
) -> None:
    """The epoch stays, and is the former one too. What the member does not report is gone already."""
    before = member(assigned={ORDERS: (0,), AUDIT: (0, 1)})
    after = step(before, {ORDERS: (0,), AUDIT: (0, 1)}, owned, is_new=True).next()
    expected = replace(before, previous_epoch=5, state=state, assigned=epochs({ORDERS: (0,)}))
    assert after == replace(expected, revoking=epochs(revoking))
    assert step(before, {}, owned).next() is before, "its subscription is as it was"


def test_more_is_to_be_given_up_when_the_subscription_changes_again() -> None:
    before = member(UNREVOKED, {ORDERS: (0,), AUDIT: (0,)}, {AUDIT: (3,)})
    for is_new in (False, True):
        after = step(before, {ORDERS: (0,)}, is_new=is_new).next()
        revoking = {AUDIT: (3, 0)} if is_new else {AUDIT: (3,)}
        assigned = {ORDERS: (0,)} if is_new else {ORDERS: (0,), AUDIT: (0,)}
        previous = 5 if is_new else 4
        assert after == replace(
            before, previous_epoch=previous, assigned=epochs(assigned), revoking=epochs(revoking)
        )


@pytest.mark.parametrize("state", [STABLE, UNRELEASED])
def test_what_is_not_in_the_target_is_given_up_in_the_former_epoch(state: MemberState) -> None:
    before = member(state, {ORDERS: (0, 1), AUDIT: (2,)}, regex="au.*")
    target: Has = {ORDERS: (1, 2), AUDIT: (2,)}
    for owned in (None, {ORDERS: (0,)}):
        after = step(before, target, owned, epoch=7).next()
        assert (after.state, after.epoch, after.previous_epoch) == (UNREVOKED, 5, 5)
        assert after.assigned == epochs({ORDERS: (1,), AUDIT: (2,)})
        assert after.revoking == epochs({ORDERS: (0,)})
    after = step(before, target, {ORDERS: (1,)}, epoch=7).next()  # it has given that up already
    assert (after.state, after.epoch, after.previous_epoch, after.revoking) == (STABLE, 7, 5, {})
    assert after.assigned == {ORDERS: {1: 4, 2: 7}, AUDIT: {2: 4}}


def test_a_topic_without_a_target_is_given_up() -> None:
    before = member(assigned={ORDERS: (0,), AUDIT: (0, 1)}, topics=frozenset(("orders", "audit")))
    after = step(before, {ORDERS: (0,)}, epoch=7).next()
    assert (after.state, after.epoch) == (UNREVOKED, 5)
    assert (after.assigned, after.revoking) == (epochs({ORDERS: (0,)}), epochs({AUDIT: (0, 1)}))


def test_a_member_gets_what_is_free_and_waits_for_the_rest() -> None:
    before = member(assigned={ORDERS: (0,)})
    after = step(before, {ORDERS: (0, 1, 2)}, epoch=7, others={ORDERS: (2,)}).next()
    assert (after.state, after.epoch, after.assigned) == (UNRELEASED, 7, {ORDERS: {0: 4, 1: 7}})
    rest, whole = step(after, {ORDERS: (0, 1, 2)}, epoch=7), {ORDERS: {0: 4, 1: 7, 2: 7}}
    assert rest.next() == replace(after, state=STABLE, previous_epoch=7, assigned=whole)
    assert step(after, {ORDERS: (0, 1)}, epoch=7).next().state is STABLE


def test_a_member_takes_back_what_it_was_to_give_up() -> None:
    before = member(UNREVOKED, {ORDERS: (0,)}, {ORDERS: (1,)})
    after = step(before, {ORDERS: (0, 1)}, {ORDERS: (0,)}, epoch=6).next()
    assert (after.state, after.epoch, after.revoking) == (STABLE, 6, {})
    assert after.assigned == {ORDERS: {0: 4, 1: 6}}
    assert step(before, {ORDERS: (0, 1)}, {ORDERS: (0, 1)}, epoch=6).next() is before


def test_the_state_of_a_newer_release_is_left_by_a_member_without_partitions() -> None:
    before = member(MemberState.UNKNOWN, {ORDERS: (0,)})
    for owned in (None, {ORDERS: (0,)}):
        with pytest.raises(Refusal) as refused:
            step(before, {ORDERS: (0,)}, owned, epoch=6).next()
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
        text = "The consumer group member is in a unknown state. "
        assert refused.value.message == f"{text}The member must abandon all its partitions and rejoin."
    after = step(before, {ORDERS: (1,)}, {}, epoch=6).next()
    assert (after.state, after.epoch, after.assigned) == (STABLE, 6, {ORDERS: {1: 6}})


def test_a_prepared_step_counts_while_all_it_depends_on_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before = member(assigned={ORDERS: (0,), AUDIT: (1,)}, revoking={ORDERS: (3,)})
    made_of = step(before, {ORDERS: (0, 1)})
    prepared = Divided(made_of)
    assert prepared.is_of(made_of) and prepared.is_of(replace(made_of, owned=()))
    changes: list[dict[str, Any]] = [
        {"target_epoch": 6},
        {"target": {ORDERS: frozenset((0, 1))}},
        {"target": {**made_of.target, AUDIT: frozenset()}},
        {"member": replace(before, assigned={**before.assigned, ORDERS: {0: 4}})},
        {"member": replace(before, assigned={**before.assigned, AUDIT: {1: 4}})},
        {"member": replace(before, assigned={ORDERS: before.assigned[ORDERS]})},
        {"member": replace(before, revoking={})},
        {"topic_ids": Subscription(replace(before, topics=frozenset()), {}, TOPICS)},
    ]
    assert not any(prepared.is_of(replace(made_of, **change)) for change in changes)
    made_of.owners.change(None, Member("m3", assigned=epochs({OTHER: (1,)})))
    assert prepared.is_of(made_of)
    made_of.owners.change(None, Member("m3", assigned=epochs({ORDERS: (1,)})))
    assert not prepared.is_of(made_of)
    other = Divided(made_of)
    monkeypatch.setattr(TOPICS, "image_version", 2)
    assert not other.is_of(made_of)


@pytest.mark.parametrize(("count", "is_large"), [(MANY, False), (MANY + 1, True)])
def test_steps_of_very_many_partitions_are_large(count: int, is_large: bool) -> None:
    assert step(member(), {ORDERS: range(count)}).is_large() is is_large
    both = step(member(assigned={AUDIT: range(count - 1)}), {ORDERS: (0,)})
    assert both.is_large() is is_large
