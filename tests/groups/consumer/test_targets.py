"""Targets: of what they are computed, which member keeps a partition, and what an assignor gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.groups import assigning
from kraftd.groups.assigning import FIRST_AT_ONCE
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import retargeting
from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, MemberSpec, Waits, finish
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import (
    PARTITION_BYTES,
    TOPIC_BYTES,
    Member,
    assignment_bytes,
    recorded_assignment,
)
from kraftd.groups.consumer.owners import MANY
from kraftd.groups.consumer.records import Resolved
from kraftd.groups.consumer.target import Plan, SubscribedTopics, single_owners
from kraftd.groups.records import encode_value
from kraftd.groups.state import ShardState
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import DESCRIBE, HEARTBEAT, Consumer, heartbeat, joining, settle
from tests.groups.desk import Desk, KnownTopics

T, U = b"t" * 16, b"u" * 16
Rows = Mapping[bytes, Sequence[int]]


def group_of(*members: Member, **targets: Rows) -> ConsumerGroup:
    group = ConsumerGroup("g", Timeline())
    for member in members:
        group.put(member)
    for member_id, rows in targets.items():
        group.set_target(member_id, {topic: frozenset(some) for topic, some in rows.items()})
    return group


@pytest.mark.parametrize(
    ("claims", "owners", "expected"),
    [
        ({"a": (0,), "b": (0,)}, {"b": (0,)}, {"a": (), "b": (0,)}),
        ({"a": (0,), "b": (0,)}, {"a": (0,)}, {"a": (0,), "b": ()}),
        ({"a": (0, 1), "b": (0, 2)}, {}, {"a": (0, 1), "b": (2,)}),
        ({"0-new": (0, 1), "a": (0,)}, {}, {"0-new": (1,), "a": (0,)}),
        ({"b": (0, 1), "a": (0, 2)}, {}, {"b": (0, 1), "a": (2,)}),
        ({"a": (0,), "b": (0,)}, {"gone": (0,)}, {"a": (0,), "b": ()}),
        ({"a": (0, 1), "b": (1, 2)}, {"b": (0, 1)}, {"a": (), "b": (1, 2)}),
    ],
)
def test_a_partition_of_two_targets_is_left_to_the_member_that_has_it(
    claims: dict[str, Sequence[int]], owners: dict[str, Sequence[int]], expected: dict[str, Sequence[int]]
) -> None:
    """Without an owner, the first member of the group has it; one that is about to join comes last."""
    group = group_of(Member("a"), Member("b"))
    for name, some in owners.items():
        held = Member(name, assigned={T: dict.fromkeys(some, 1)})
        group.owners.change(None, held)
    specs = {name: MemberSpec(f"i-{name}", (T,), {T: frozenset(some)}) for name, some in claims.items()}
    finish(single_owners(group, specs))
    assert specs == {
        name: MemberSpec(f"i-{name}", (T,), {T: set(some)} if some else {}) for name, some in expected.items()
    }
    assert list(specs) == list(claims)


def seen_by(plan: Plan) -> tuple[GroupSpec, Assigned]:
    """What the assignor of a plan is given, and what the plan makes of its answer."""
    specs: list[GroupSpec] = []

    def assign(spec: GroupSpec) -> Waits[Assigned]:
        specs.append(spec)
        yield None
        return {next(iter(spec.members)): {T: frozenset((0,))}}

    assigned = finish(replace(plan, assignor=assign).compute())
    return specs[0], assigned


def plan_of(group: ConsumerGroup, changed: Member | None = None, replaced_id: str | None = None) -> Plan:
    return Plan(group, 5, ASSIGNORS["uniform"], True, TOPICS, changed, replaced_id)


TOPICS = KnownTopics(orders=4, audit=2)
ORDERS, AUDIT = (TOPICS.topic_id(name) or b"" for name in ("orders", "audit"))
NAMED = frozenset(("orders", "none"))


def named_group() -> ConsumerGroup:
    members = Member("a", topics=NAMED), Member("b", instance_id="i", topics=NAMED)
    return group_of(*members, a={ORDERS: (0,)}, b={ORDERS: (1,)})


def test_a_plan_has_the_group_with_its_changed_member() -> None:
    group = named_group()
    spec, assigned = seen_by(plan_of(group))
    a, b = MemberSpec(None, (ORDERS,), group.target("a")), MemberSpec("i", (ORDERS,), group.target("b"))
    assert spec == GroupSpec({"a": a, "b": b}, True, {ORDERS: 4}, "g")
    assert assigned == {"a": {T: {0}}, "b": {}}
    spec, _ = seen_by(plan_of(group, Member("b", topics=frozenset(("audit",)))))
    assert spec.members == {"a": a, "b": MemberSpec(None, (AUDIT,), group.target("b"))}
    assert spec.partition_counts == {ORDERS: 4, AUDIT: 2}
    spec, _ = seen_by(plan_of(group, Member("c", topics=NAMED)))
    assert spec.members == {"a": a, "b": b, "c": MemberSpec(None, (ORDERS,), {})}


def test_a_plan_leaves_each_partition_to_one_member() -> None:
    group = named_group()
    group.set_target("a", {ORDERS: frozenset((0, 1))})
    spec, _ = seen_by(plan_of(group))
    assert [one.assigned for one in spec.members.values()] == [{ORDERS: {0, 1}}, {}]


def test_a_successor_has_the_place_and_the_target_of_a_static_member() -> None:
    group = named_group()
    spec, _ = seen_by(plan_of(group, Member("c", instance_id="i", topics=NAMED), "b"))
    assert spec.members == {
        "a": MemberSpec(None, (ORDERS,), group.target("a")),
        "c": MemberSpec("i", (ORDERS,), group.target("b")),
    }


def test_equal_subscriptions_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    find = TOPICS.topic_id

    def topic_id(name: str) -> bytes | None:
        asked.append(name)
        return find(name)

    monkeypatch.setattr(TOPICS, "topic_id", topic_id)
    topics = SubscribedTopics({"au.*": Resolved(frozenset(("audit",)), 1, 0)}, TOPICS)
    for name in ("a", "b"):
        assert finish(topics.of(Member(name, topics=NAMED))) == (ORDERS,)
    assert sorted(asked) == ["none", "orders"]
    assert set(finish(topics.of(Member("c", topics=NAMED, regex="au.*")))) == {ORDERS, AUDIT}
    assert finish(topics.of(Member("d", regex="au.*"))) == (AUDIT,)
    assert finish(topics.of(Member("e", regex="x.*"))) == ()
    assert finish(topics.partition_counts()) == {ORDERS: 4, AUDIT: 2}


class Spied:
    """A desk whose assignor is `uniform`, which notes what it is given."""

    def __init__(self, interval_ms: int = 0) -> None:
        self.specs: list[GroupSpec] = []
        config = GroupConfig(
            group_consumer_assignors=["spied"],
            assignors={"spied": self.assign},
            group_consumer_assignment_interval_ms=interval_ms,
        )
        self.desk = Desk(config, orders=4, audit=2)

    def assign(self, spec: GroupSpec) -> Waits[Assigned]:
        self.specs.append(spec)
        return (yield from ASSIGNORS["uniform"](spec))

    def taken(self) -> list[tuple[list[str], bool]]:
        """The members of each target since, and whether they agree."""
        found = [(sorted(spec.members), spec.is_homogeneous) for spec in self.specs]
        self.specs.clear()
        return found


def test_members_agree_as_they_will_be_after_the_change() -> None:
    spied = Spied()
    ask = spied.desk.ask
    Consumer(ask, "m1").join()
    static = Consumer(ask, "m2", instance="i1")
    static.join()
    assert spied.taken() == [(["m1"], True), (["m1", "m2"], True)]
    ask(heartbeat("m1", 2, topics=("orders", "audit")), HEARTBEAT)
    ask(heartbeat("m1", 2, topics=("orders",)), HEARTBEAT)
    assert spied.taken() == [(["m1", "m2"], False), (["m1", "m2"], True)]
    static.leave(-2)
    Consumer(ask, "m3", topics=("orders", "audit"), instance="i1").join()
    assert spied.taken() == [(["m1", "m3"], False)]
    Consumer(ask, "m4", topics=("orders", "audit"), instance="i2").join()
    ask(heartbeat("m1", 2, topics=("orders", "audit")), HEARTBEAT)
    assert spied.taken() == [(["m1", "m3", "m4"], False), (["m1", "m3", "m4"], True)]


def test_a_successor_with_another_subscription_is_one_member_of_the_target() -> None:
    spied = Spied()
    desk = spied.desk
    (static,) = [Consumer(desk.ask, "s1", instance="i1")]
    static.join()
    static.leave(-2)
    successor = Consumer(desk.ask, "s2", topics=("audit", "orders"), instance="i1")
    successor.join()
    assert successor.count() == 6 and spied.taken() == [(["s1"], True), (["s2"], True)]
    targets = [
        record.key.member_id
        for record in desk.records()
        if isinstance(record.key, ConsumerGroupTargetAssignmentMemberKey) and record.value is not None
    ]
    assert targets == ["s1", "s2", "s2"]
    again = Consumer(desk.ask, "s2", topics=("audit",), instance="i1")
    again.epoch = successor.epoch
    desk.ask(heartbeat("s2", successor.epoch, instance="i1", topics=("audit",)), HEARTBEAT)
    assert spied.taken() == [(["s2"], True)]


def test_a_target_that_is_due_later_takes_members_to_agree_as_when_one_last_changed() -> None:
    """As in Kafka. The pattern of a member that has left counts until another one changes."""
    spied = Spied(1_000)
    desk = spied.desk
    one, two = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2", topics=None, regex="audit")
    one.join()
    two.join()
    desk.wait(1_010)
    one.beat()
    desk.wait(1_010)
    spied.taken()
    one.beat()
    two.leave()
    assert spied.taken() == []
    one.beat()
    assert spied.taken() == [(["m1"], False)]


def test_a_target_is_computed_once_for_an_epoch() -> None:
    spied = Spied()
    one = Consumer(spied.desk.ask, "m1")
    one.join()
    settle(one)
    end = len(spied.desk.records())
    for _ in range(3):
        assert one.beat().error_code == 0
    spied.desk.topics.change("unrelated", 1)
    one.beat()
    assert spied.taken() == [(["m1"], True)] and len(spied.desk.records()) == end


def test_two_groups_get_their_targets_in_slices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assigning, "AT_ONCE", 0)
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4)
    members = [Consumer(desk.ask, "m1", group) for group in ("g", "h")]
    for one in members:
        one.join()
    desk.topics.change("orders", 6)
    for expected in (4, 6):
        assert [one.beat().error_code for one in members] == [0, 0]
        assert [one.count() for one in members] == [expected] * 2
        desk.wait(50)


def test_members_agree_by_one_pattern() -> None:
    spied = Spied()
    desk = spied.desk
    Consumer(desk.ask, "m1", topics=None, regex="ord.*").join()
    desk.wait(10)
    one, two = (Consumer(desk.ask, name, topics=None, regex="ord.*") for name in ("m2", "m3"))
    one.join()
    two.join()
    desk.ask(heartbeat("m3", two.epoch, topics=("audit",)), HEARTBEAT)
    assert spied.taken()[-3:] == [
        (["m1", "m2"], True),
        (["m1", "m2", "m3"], True),
        (["m1", "m2", "m3"], False),
    ]


def test_only_targets_that_have_changed_are_written() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4)
    one, two = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    one.join()
    two.join()
    settle(one, two)
    kinds = []
    for topics in (("orders", "none"), ()):
        end = len(desk.records())
        one.take(desk.ask(heartbeat("m1", one.epoch, topics=topics), HEARTBEAT))
        new = [record.key for record in desk.records()[end:]]
        kinds.append(
            [key.member_id for key in new if isinstance(key, ConsumerGroupTargetAssignmentMemberKey)]
        )
    assert [sorted(ids) for ids in kinds] == [[], ["m1", "m2"]]


MOST = 450  # partitions of a topic in a batch
SOME = 190  # of a member, with all that a batch has besides


def full_desk(partitions: int, **config: Any) -> Desk:
    return Desk(
        GroupConfig(max_batch_bytes=TOPIC_BYTES + MOST * PARTITION_BYTES, **config), orders=partitions
    )


@pytest.mark.parametrize(("partitions", "fits"), [(2 * SOME, True), (2 * MOST + 2, False)])
def test_a_member_whose_part_no_record_can_hold_is_refused_and_goes(partitions: int, fits: bool) -> None:
    desk = full_desk(partitions)
    sent = [desk.send(joining(name), HEARTBEAT) for name in ("m1", "m2")]
    desk.wait(1_000)
    answers: list[Any] = [desk.answers[number] for number in sent]
    if fits:
        assert [one.error_code for one in answers] == [0, 0]
        return
    assert [one.error_code for one in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert {one.error_message for one in answers} == {"The assignment is too large for a record."}
    desk.wait(43_999)
    (group,) = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups
    assert [(row.member_id, row.member_epoch) for row in group.members] == [("m1", 0), ("m2", 0)]
    desk.wait(1)
    (group,) = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups
    assert group.members == []


@pytest.mark.parametrize("partitions", [MOST, MOST + 1])
def test_a_member_whose_part_no_record_can_hold_any_more_keeps_what_it_has(partitions: int) -> None:
    """A record has a little more than the partitions, so it is too large with as many as fill a batch."""
    desk = full_desk(SOME, group_consumer_assignment_interval_ms=0)
    one = Consumer(desk.ask, "m1")
    assert one.join().member_epoch == 2
    desk.topics.change("orders", partitions)
    for _ in range(2):
        answer = one.beat()
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    (group,) = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups
    assert (group.group_state, group.assignment_epoch, one.count()) == ("Reconciling", 3, SOME)


def test_a_member_of_very_many_topics_keeps_what_it_has_if_no_record_can_hold_more() -> None:
    """A topic takes more of the record than a partition."""
    desk = Desk(
        GroupConfig(max_batch_bytes=5_200, group_consumer_assignment_interval_ms=0),
        **{f"t{number}": 1 for number in range(50)},
    )
    one = Consumer(desk.ask, "m1", topics=[f"t{number}" for number in range(200)])
    assert one.join().member_epoch == 2
    for number in range(50, 200):
        desk.topics.change(f"t{number}", 1)
    for _ in range(2):
        answer = one.beat()
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    assert one.count() == 50


@pytest.mark.parametrize(("topics", "partitions"), [(1, 1), (100, 1), (3, 30), (10, 1_000), (1, 20_000)])
def test_the_size_of_a_members_record_is_known_before_it_is_made(topics: int, partitions: int) -> None:
    has = {bytes([number]) * 16: dict.fromkeys(range(partitions), 1) for number in range(topics)}
    size = len(encode_value(recorded_assignment(Member("m", assigned=has))))
    assert 0 <= size - assignment_bytes(topics, topics * partitions) <= 12 + 8 * topics


def state_of(desk: Desk) -> ShardState:
    return desk.coordinator.shards[0].state


def test_slices_begin_a_target_that_records_can_hold() -> None:
    for partitions, begins in ((2 * MOST - 2, True), (2 * MOST - 1, True), (2 * MOST, False)):
        state = state_of(full_desk(partitions))
        group = ConsumerGroup("g", state.timeline)
        state.groups["g"] = group
        assert retargeting.begin(state, "g") is None and retargeting.begin(state, "none") is None
        for name in ("m1", "m2"):
            group.put(Member(name, topics=frozenset(("orders",)), assignor="range"))
        group.set_facts(epoch=9)
        plan = retargeting.begin(state, "g")
        expected = Plan(group, 9, ASSIGNORS["range"], True, state.metadata)
        assert plan == (expected if begins else None)
        group.put(Member("m3", topics=frozenset(("audit",))))
        plan = retargeting.begin(state, "g")
        assert plan is not None and not plan.is_homogeneous


def test_the_assignor_is_that_of_most_members_if_the_broker_knows_it() -> None:
    own = Custom("own", ASSIGNORS["range"], lambda *_: None)
    first, second = ASSIGNORS["range"], ASSIGNORS["uniform"]
    cases: list[tuple[list[str], dict[str, Any], str | None, Any]] = [
        (["range", "uniform"], dict(ASSIGNORS), None, first),
        (["range", "uniform"], dict(ASSIGNORS), "uniform", second),
        (["range", "uniform"], dict(ASSIGNORS), "own", first),
        (["own"], {"own": own}, "uniform", own),
        (["gone"], {"own": own}, "uniform", second),
    ]
    for names, known, preferred, expected in cases:
        state = state_of(Desk(GroupConfig(group_consumer_assignors=names, assignors=known)))
        assert retargeting.assignor_of(state, preferred) is expected


def test_what_is_many_for_a_first_member() -> None:
    state = state_of(Desk(orders=FIRST_AT_ONCE, audit=1))
    assert not retargeting.has_many(state, ("orders", "none"))
    assert retargeting.has_many(state, ("orders", "audit"))


@pytest.mark.parametrize(("partitions", "large"), [(MANY, False), (MANY + 1, True)])
@pytest.mark.parametrize("more", [0, 1])
def test_parts_are_large_by_the_members_that_are_there(partitions: int, large: bool, more: int) -> None:
    state = state_of(Desk(orders=partitions * (1 + more)))
    group = ConsumerGroup("g", state.timeline)
    assert not retargeting.has_large_parts(state, group)
    for number in range(1 + more):
        group.put(Member(f"m{number}", topics=frozenset(("orders",))))
    assert retargeting.has_large_parts(state, group) is large
