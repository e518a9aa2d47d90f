"""Where long work pauses, with slices of a few rows instead of thousands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kraftd.ground import pace
from kraftd.groups import topics
from kraftd.groups.call import Call
from kraftd.groups.consumer import describing, member, reconciling, target
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, MemberSpec, Waits
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member, recorded_assignment
from kraftd.groups.consumer.owners import Owners
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.groups.consumer.subscriptions import Subscription
from kraftd.groups.consumer.target import Plan, SubscribedTopics, single_owners
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tests.groups.desk import Desk, KnownTopics

NAMES = [f"topic-{number}" for number in range(20)]
TOPICS = KnownTopics(**dict.fromkeys(NAMES, 4))
IDS = [TOPICS.topic_id(name) or b"" for name in NAMES]


def pauses(slices: Iterable[Any]) -> int:
    return sum(1 for _ in slices)


@pytest.mark.parametrize(("count", "expected"), [(2, 0), (3, 1), (5, 1), (6, 2)])
def test_topics_are_looked_up_in_slices(count: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "TOPICS_A_SLICE", 3)
    subscribed = SubscribedTopics({}, TOPICS)
    assert pauses(subscribed.of(Member("a", topics=frozenset(NAMES[:count])))) == expected
    assert pauses(subscribed.of(Member("b", topics=frozenset(NAMES[:count])))) == 0
    assert pauses(subscribed.partition_counts()) == expected


@pytest.mark.parametrize(("count", "expected"), [(2, 0), (3, 1), (5, 1), (6, 2)])
def test_members_are_compared_with_their_targets_in_slices(
    count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "TOPICS_A_SLICE", 3)
    one = Member("a", topics=frozenset(NAMES))
    wanted = dict.fromkeys(IDS[:count], frozenset((0,)))
    subscription = Subscription(one, {}, TOPICS)
    step = Reconciling(one, 1, wanted, subscription, False, Owners(Timeline()))
    assert pauses(step.divide()) == expected


@pytest.mark.parametrize(("count", "expected"), [(2, 0), (3, 1), (5, 1), (6, 2)])
def test_the_partitions_of_a_topic_are_compared_in_slices(
    count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are free; or those that go, and once more those that stay."""
    monkeypatch.setattr(reconciling, "PARTITIONS_A_SLICE", 3)
    one = Member("a", topics=frozenset(NAMES))
    subscription, owners = Subscription(one, {}, TOPICS), Owners(Timeline())
    step = Reconciling(one, 1, {IDS[0]: frozenset(range(count))}, subscription, False, owners)
    assert pauses(step.divide()) == expected
    has = Member("a", topics=frozenset(NAMES), assigned={IDS[0]: dict.fromkeys(range(count), 1)})
    gives_up = Reconciling(has, 1, {IDS[0]: frozenset(range(1, count))}, subscription, False, owners)
    assert pauses(gives_up.divide()) == 2 * expected


@pytest.mark.parametrize(("count", "expected"), [(2, 0), (3, 1), (5, 1), (6, 2)])
def test_a_target_looks_at_members_in_slices(
    count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "MEMBERS_A_SLICE", 3)

    def assign(spec: GroupSpec) -> Waits[Assigned]:
        yield from ()
        return {}

    group = ConsumerGroup("g", Timeline())
    for number in range(count):
        group.put(Member(f"m{number}"))
    # One after the members are known, one when those with two owners are.
    assert pauses(Plan(group, 1, assign, True, TOPICS).compute()) == 2 + expected


@pytest.mark.parametrize(
    ("sizes", "expected"), [((2, 2, 2), 1), ((3, 2, 2), 2), ((3, 3), 2), ((2, 1, 2), 1), ((4, 1, 1), 1)]
)
def test_claims_are_counted_in_slices(
    sizes: tuple[int, ...], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "PARTITIONS_A_SLICE", 3)
    first = 0
    specs = {}
    for number, size in enumerate(sizes):
        specs[f"m{number}"] = MemberSpec(None, IDS, {IDS[0]: frozenset(range(first, first + size))})
        first += size
    assert pauses(single_owners(ConsumerGroup("g", Timeline()), specs)) == expected + 1


@pytest.mark.parametrize(
    ("assigned", "revoking", "expected"),
    [((10,), (), 0), ((30,), (), 2), ((20,), (), 1), ((10, 10, 10), (), 2), ((10,), (30,), 2)],
)
def test_the_record_of_what_a_member_has_is_made_in_slices(
    assigned: tuple[int, ...], revoking: tuple[int, ...], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic counts twice: once for its partitions, once for their epochs."""
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 3)
    monkeypatch.setattr(member, "COPIES_A_US", 10)
    has, gives = (
        {topic: dict.fromkeys(range(size), 1) for topic, size in zip(IDS, sizes, strict=False)}
        for sizes in (assigned, revoking)
    )
    assert pauses(recorded_assignment.begin(Member("a", assigned=has, revoking=gives))) == expected


def described_in(members: int, topics: int) -> int:
    """The pauses of a description; each member has a partition of each topic, and is to have two."""
    desk = Desk(**dict.fromkeys(NAMES, 2))
    state = desk.coordinator.shards[0].state
    group = ConsumerGroup("g", state.timeline)
    state.timeline.put(state.groups, "g", group)
    for number in range(members):
        group.put(Member(f"m{number}", assigned={topic: {0: 1} for topic in IDS[:topics]}))
        group.set_target(f"m{number}", dict.fromkeys(IDS[:topics], frozenset((0, 1))))
    state.timeline.offset = 1
    state.timeline.commit(1)
    request = ConsumerGroupDescribeRequest(("g",))
    return pauses(desk.coordinator.describing(Call("", 1), request, desk.now_ms))


@pytest.mark.parametrize(("topics", "expected"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)])
def test_topics_of_a_described_member_are_looked_up_in_slices(
    topics: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of its target, and once more those that it has."""
    monkeypatch.setattr(describing, "TOPICS_A_SLICE", 3)
    assert described_in(1, topics) == expected


@pytest.mark.parametrize(("members", "expected"), [(1, 0), (2, 1), (3, 1), (4, 2)])
def test_members_are_described_in_slices(
    members: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is 40 microseconds of work: 10, and 10 for each of its three partitions."""
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 80)
    monkeypatch.setattr(describing, "MEMBER_US", 10)
    monkeypatch.setattr(describing, "ROW_US", 10)
    monkeypatch.setattr(topics, "TOPIC_US", 0)
    assert described_in(members, 1) == expected


def test_topics_of_a_description_are_authorized_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "TOPIC_US", 1_000)
    assert described_in(1, 2) == 0
    assert described_in(1, 3) == 1
