"""What assignors promise: one owner, balance, no needless move, short slices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assigned, GroupSpec, MemberSpec, finish
from kraftd.groups.share.assignor import assign_simply

QUICK = settings(max_examples=40)
TOPICS = [number.to_bytes(16, "big") for number in range(1, 5)]
counts = st.fixed_dictionaries({topic: st.integers(1, 9) for topic in TOPICS})
subscriptions = st.lists(st.sets(st.sampled_from(TOPICS)).map(sorted), min_size=1, max_size=6)


def spec_of(topics: list[list[bytes]], counts: dict[bytes, int], assigned: Assigned) -> GroupSpec:
    members = {
        f"m{number}": MemberSpec(None, some, assigned.get(f"m{number}", {}))
        for number, some in enumerate(topics)
    }
    return GroupSpec(members, all(some == topics[0] for some in topics), counts)


def places(assigned: Assigned) -> list[tuple[str, bytes, int]]:
    return [
        (member, topic, index)
        for member, partitions in assigned.items()
        for topic, indexes in partitions.items()
        for index in indexes
    ]


@pytest.mark.parametrize("name", list(ASSIGNORS))
@QUICK
@given(topics=subscriptions, counts=counts)
def test_every_partition_has_one_owner_that_is_subscribed(
    name: str, topics: list[list[bytes]], counts: dict[bytes, int]
) -> None:
    assigned = finish(ASSIGNORS[name](spec_of(topics, counts, {})))
    found = sorted((topic, index) for _, topic, index in places(assigned))
    wanted = {topic for some in topics for topic in some}
    assert found == sorted((topic, index) for topic in wanted for index in range(counts[topic]))
    assert all(topic in topics[int(member[1:])] for member, topic, _ in places(assigned))


@QUICK
@given(topics=st.sets(st.sampled_from(TOPICS), min_size=1).map(sorted), size=st.integers(1, 7), counts=counts)
def test_members_with_equal_subscriptions_differ_by_one_partition_at_most(
    topics: list[bytes], size: int, counts: dict[bytes, int]
) -> None:
    assigned = finish(ASSIGNORS["uniform"](spec_of([topics] * size, counts, {})))
    loads = [sum(map(len, partitions.values())) for partitions in assigned.values()]
    assert max(loads) - min(loads) <= 1


@QUICK
@given(topics=subscriptions, counts=counts)
def test_an_assignment_that_is_balanced_stays(topics: list[list[bytes]], counts: dict[bytes, int]) -> None:
    first = finish(ASSIGNORS["uniform"](spec_of(topics, counts, {})))
    again = finish(ASSIGNORS["uniform"](spec_of(topics, counts, first)))
    assert sorted(places(again)) == sorted(places(first))


@QUICK
@given(size=st.integers(2, 7), counts=counts)
def test_a_member_that_joins_takes_only_its_share(size: int, counts: dict[bytes, int]) -> None:
    first = finish(ASSIGNORS["uniform"](spec_of([TOPICS] * (size - 1), counts, {})))
    second = finish(ASSIGNORS["uniform"](spec_of([TOPICS] * size, counts, first)))
    moved = set(places(second)) - set(places(first))
    assert {member for member, _, _ in moved} <= {f"m{size - 1}"}


@pytest.mark.parametrize("at", [0, 8])
def test_equal_topics_are_assigned_in_the_order_of_their_ids_in_java(at: int) -> None:
    """Both halves of an id are signed there."""
    lower, higher = (bytes(at) + bytes((byte,)) + bytes(15 - at) for byte in (0x80, 0x01))
    members = {name: MemberSpec(None, [higher, lower], {}) for name in ("m0", "m1")}
    spec = GroupSpec(members, False, {lower: 1, higher: 1})
    assert finish(ASSIGNORS["uniform"](spec)) == {"m0": {lower: {0}}, "m1": {higher: {0}}}


def test_members_of_different_topics_are_levelled() -> None:
    one, two = TOPICS[:2]
    first: Assigned = {"m0": {one: frozenset(range(8))}}
    assigned = finish(ASSIGNORS["uniform"](spec_of([[one], [one, two], [two]], {one: 8, two: 1}, first)))
    loads = {name: sum(map(len, partitions.values())) for name, partitions in assigned.items()}
    assert loads == {"m0": 4, "m1": 4, "m2": 1}


def test_share_partitions_stay_with_fewer_members_if_others_have_them__kip932() -> None:
    (topic, *_) = TOPICS
    had = {"m0": 0, "m2": 1, "m3": 1, "m4": 1}
    former: Assigned = {name: {topic: frozenset((index,))} for name, index in had.items()}
    spec = spec_of([[topic]] * 5, {topic: 2}, former)
    assigned = finish(
        assign_simply(spec, {topic: frozenset((0, 1))})
    )  # three members for each, and m0 for both
    assert assigned == former | {"m1": {topic: {0}}}
    assert finish(assign_simply(GroupSpec({}, True, {}), {})) == {}


@pytest.mark.parametrize("name", list(ASSIGNORS))
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_a_group_without_members_or_topics_has_no_partitions(name: str, is_homogeneous: bool) -> None:
    for members in ({}, {"m0": MemberSpec(None, (), {})}):
        assigned = finish(ASSIGNORS[name](GroupSpec(members, is_homogeneous, {})))
        assert isinstance(assigned, dict) and not places(assigned)


@pytest.mark.parametrize("name", list(ASSIGNORS))
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_a_large_group_is_assigned_in_slices(name: str, is_homogeneous: bool) -> None:
    counts = dict.fromkeys(TOPICS, 2500)
    topics = [TOPICS if is_homogeneous or number % 2 else TOPICS[:2] for number in range(1000)]
    slices = ASSIGNORS[name](spec_of(topics, counts, {}))
    assert sum(1 for _ in slices) >= 5


@pytest.mark.parametrize(("topics", "expected"), [((), {}), ((TOPICS[0],), {TOPICS[0]: frozenset((2,))})])
def test_ranges_of_members_said_to_agree_are_of_the_first_ones_topics(
    topics: tuple[bytes, ...], expected: dict[bytes, frozenset[int]]
) -> None:
    """Kafka says so of a group that a member joins without a subscription while a target is due."""
    members = {"m1": MemberSpec(None, (TOPICS[0],), {}), "m0": MemberSpec(None, topics, {})}
    assigned = finish(ASSIGNORS["range"](GroupSpec(members, True, {TOPICS[0]: 3})))
    assert assigned["m1"] == expected
