"""What a group is subscribed to once members have changed, which epochs it takes, and which assignor wins."""

from __future__ import annotations

import pytest

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.assignors.spec import MemberSpec, finish
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.patterns import compiled
from kraftd.groups.consumer.records import Resolved
from kraftd.groups.consumer.subscriptions import (
    regexes_after,
    topics_after,
    topics_without,
    unused_regexes,
)
from kraftd.groups.consumer.target import single_owners
from kraftd.groups.modern_group import Subscribers, is_homogeneous
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata
from kraftd.wire.error_code import ErrorCode


def group_of(*members: Member, **regexes: int) -> ConsumerGroup:
    """A group of two topics, `named` by one member and `matched` by the pattern `m.*`."""
    group = ConsumerGroup("g", Timeline())
    group.members.update({member.member_id: member for member in members})
    group.regexes.update({name.replace("_", ".*"): number for name, number in regexes.items()})
    group.resolved["m.*"] = Resolved(frozenset(("matched",)), 1, 0)
    group.topics.update({"named": Subscribers(1, 0), "matched": Subscribers(0, 1)})
    return group


def test_a_pattern_counts_as_often_as_members_use_it() -> None:
    group = group_of(m_=1)
    one, other, none = Member("a", regex="m.*"), Member("a", regex="x.*"), Member("a", regex="")
    assert regexes_after(group, one, one) == {"m.*": 1}
    assert regexes_after(group, one, other) == {"x.*": 1}
    assert regexes_after(group, none, one) == {"m.*": 2}
    assert regexes_after(group, one, none) == {}
    assert regexes_after(group, none, other) == {"m.*": 1, "x.*": 1}
    assert regexes_after(group, none, Member("a", regex=None)) == {"m.*": 1}


def test_what_only_a_members_pattern_matches_goes_with_it() -> None:
    one, other = Member("a", regex="m.*"), Member("a", regex="x.*")
    named = {"named": Subscribers(1, 0)}
    assert topics_after(group_of(m_=1), one, other) == named
    assert topics_after(group_of(m_=2), one, other) == named | {"matched": Subscribers(0, 1)}
    assert topics_after(group_of(m_=1), one, one) == named | {"matched": Subscribers(0, 1)}
    by_name = Member("b", topics=frozenset(("named",)))
    assert topics_without(group_of(m_=1), [by_name], ["m.*"]) == {}
    assert topics_without(group_of(m_=1), [by_name], ["x.*"]) == {"matched": Subscribers(0, 1)}
    several = group_of(m_=1)
    several.topics.update({"named": Subscribers(3, 0), "matched": Subscribers(1, 3)})
    fewer = {"named": Subscribers(1, 0), "matched": Subscribers(1, 2)}
    assert topics_without(several, [by_name, by_name], ["m.*"]) == fewer


def test_patterns_are_unused_when_all_their_members_have_gone() -> None:
    one, two = Member("a", regex="m.*"), Member("b", regex="m.*")
    assert unused_regexes(group_of(m_=2), [one, Member("c")]) == []
    assert unused_regexes(group_of(m_=2), [one, two]) == ["m.*"]
    assert unused_regexes(group_of(m_=1), [one]) == ["m.*"]


@pytest.mark.parametrize(
    ("regexes", "topics", "expected"),
    [
        ({}, {"t": Subscribers(2, 0)}, True),
        ({}, {"t": Subscribers(2, 0), "u": Subscribers(1, 0)}, False),
        ({"m.*": 2}, {"t": Subscribers(0, 1)}, True),
        ({"m.*": 1}, {"t": Subscribers(0, 1)}, False),
        ({"m.*": 2}, {"t": Subscribers(1, 1)}, False),
        ({"m.*": 2}, {"t": Subscribers(0, 2)}, False),
    ],
)
def test_members_agree_by_names_or_by_one_pattern(
    regexes: dict[str, int], topics: dict[str, Subscribers], expected: bool
) -> None:
    assert is_homogeneous(regexes, topics, 2) is expected


@pytest.mark.parametrize(
    ("regex", "error"),
    [
        ("[", "missing closing ]"),
        ("a(b", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid named capture"),
        ("(?P<>a)", "invalid named capture"),
        ("\\Z", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
    ],
)
def test_a_pattern_that_is_not_valid_is_refused_in_kafkas_words(regex: str, error: str) -> None:
    with pytest.raises(Refusal) as refused:
        compiled(regex)
    expected = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
    assert refused.value.message == expected


def test_offsets_are_fetched_with_the_epoch_of_the_member_alone() -> None:
    group = group_of(Member("a", epoch=5), Member("b", epoch=5, classic=ClassicMemberMetadata(1000, ())))
    group.check_fetch("a", 5, is_latest=True)
    group.check_fetch(None, -1, is_latest=True)
    refusals = {
        ("a", 4): ErrorCode.STALE_MEMBER_EPOCH,
        ("b", 4): ErrorCode.ILLEGAL_GENERATION,
        ("c", 5): ErrorCode.UNKNOWN_MEMBER_ID,
        (None, 5): ErrorCode.UNKNOWN_SERVER_ERROR,
        ("a", -1): ErrorCode.STALE_MEMBER_EPOCH,
    }
    for (member_id, epoch), code in refusals.items():
        with pytest.raises(Refusal) as refused:
            group.check_fetch(member_id, epoch, is_latest=True)
        assert refused.value.code is code


def test_a_target_whose_partitions_others_still_have_stays_as_it_is() -> None:
    topic = bytes(16)
    group = group_of()
    group.put(Member("m2", epoch=1, assigned={topic: {0: 1}}))
    target = {"m1": {topic: frozenset((0,))}, "m2": {topic: frozenset((1,))}}
    specs = {name: MemberSpec(None, (topic,), assigned) for name, assigned in target.items()}
    finish(single_owners(group, specs))
    assert {name: spec.assigned for name, spec in specs.items()} == target


def test_the_assignor_of_most_members_is_preferred() -> None:
    assert preferred_assignor({}) is None
    assert preferred_assignor({"range": 2, "uniform": 1}) == "range"
    assert preferred_assignor({"range": 1, "uniform": 1}) == "uniform"
    assert preferred_assignor({"range": 1, "uniform": 2}, old="uniform", new="range") == "range"
    assert preferred_assignor({"range": 2, "uniform": 2}, old="uniform") == "range"
    assert preferred_assignor({"range": 2, "uniform": 3}, old="uniform") == "uniform"
    assert preferred_assignor({"range": 1, "uniform": 2}, new="range") == "uniform"
    assert preferred_assignor({"range": 1}, old="range") is None
    assert preferred_assignor({"range": 1}, new="own") == "own"
    assert preferred_assignor({"range": 2}, new="own") == "range"
