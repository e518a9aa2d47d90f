"""Which member has a partition, whether it has few of a topic or is noted as a whole."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kraftd.groups.consumer import owners as module
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.owners import Owners
from kraftd.groups.timeline import Timeline

TOPIC, OTHER = bytes(15) + b"\1", bytes(15) + b"\2"


@pytest.fixture(autouse=True)
def _three_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 3)


def member(name: str, assigned: Iterable[int] = (), revoking: Iterable[int] = ()) -> Member:
    """A member with partitions of one topic."""
    parts = [{TOPIC: dict.fromkeys(some, 1)} if some else {} for some in (list(assigned), list(revoking))]
    return Member(name, assigned=parts[0], revoking=parts[1])


def owners_of(*members: Member) -> Owners:
    owners = Owners(Timeline())
    for one in members:
        owners.change(None, one)
    return owners


def by_index(owners: Owners, count: int = 8) -> str:
    """The owner of each partition, in a letter each."""
    return "".join(owners.owner(TOPIC, index) or "-" for index in range(count))


@pytest.mark.parametrize(
    ("assigned", "revoking", "is_noted_whole"),
    [("012", "", False), ("01", "2", False), ("", "012", False), ("0123", "", True), ("01", "23", True)],
)
def test_a_member_of_more_than_a_few_partitions_is_noted_as_a_whole(
    assigned: str, revoking: str, is_noted_whole: bool
) -> None:
    one = member("a", map(int, assigned), map(int, revoking))
    owners = owners_of(one)
    assert (bool(owners.many), bool(owners.few)) == (is_noted_whole, not is_noted_whole)
    assert owners
    count = len(assigned + revoking)
    assert by_index(owners) == "a" * count + "-" * (8 - count)
    assert owners.owner(OTHER, 0) is None
    assert (by_index(owners), repr(owners)) == ("a" * count + "-" * (8 - count), "<Owners of 1 topics>")
    owners.change(one, None)
    assert not owners and by_index(owners) == "--------"


def test_a_partition_belongs_to_the_member_that_got_it_last() -> None:
    large, small, next_one = member("a", range(4)), member("b", (4, 5)), member("c", (5, 6))
    owners = owners_of(large, small, next_one)
    assert by_index(owners) == "aaaabcc-"
    owners.change(small, member("b", (4,)))
    assert by_index(owners) == "aaaabcc-"  # what another member got meanwhile stays
    owners.change(next_one, None)
    assert by_index(owners) == "aaaab---"
    owners.change(large, member("a", (0, 7)))  # few again
    assert by_index(owners) == "a---b--a" and not owners.many
    owners.change(member("a", (0, 7)), large)
    assert by_index(owners) == "aaaab---" and len(owners.many) == len(owners.few) == 1
    second = member("d", (), (4, 5, 6, 7))
    owners.change(None, second)
    assert by_index(owners) == "aaaabddd"  # of those noted one by one, and then of those noted as a whole
    owners.change(large, None)
    assert by_index(owners) == "----bddd"


def test_free_is_what_no_other_member_has_or_must_give_up() -> None:
    """A member may take back what it must give up itself (KIP-848)."""
    large, revoking = member("a", range(4)), member("b", (4,), (5,))
    owners, everything = owners_of(large, revoking), range(8)
    assert owners.free(TOPIC, everything, member("c")) == [6, 7]
    assert owners.free(TOPIC, everything, large) == [0, 1, 2, 3, 6, 7]
    assert owners.free(TOPIC, everything, revoking) == [5, 6, 7]
    assert owners.free(TOPIC, (7, 3, 6), revoking) == [7, 6]
    assert owners.free(OTHER, (0, 1), revoking) == [0, 1]
    giving = member("d", (4,), (5, 6, 7))
    owners = owners_of(giving)
    assert owners.free(TOPIC, everything, giving) == list(everything)
    assert owners.free(TOPIC, everything, member("e")) == [0, 1, 2, 3]
    successor = Member("f", assigned=giving.assigned, revoking=giving.revoking)  # of a static member
    assert owners.free(TOPIC, everything, successor) == [0, 1, 2, 3, 5, 6, 7]


def test_what_is_noted_of_a_topic_is_the_same_object_until_it_changes() -> None:
    small, large = member("a", (0,)), member("b", range(1, 5))
    owners = owners_of(small, large)
    before = owners.noted((TOPIC, OTHER))
    assert before == [{0: "a"}, {"b": (dict.fromkeys(range(1, 5), 1), {})}, None, None]
    owners.change(small, Member("a", epoch=2, assigned=small.assigned))  # has what it had
    assert all(one is other for one, other in zip(owners.noted((TOPIC, OTHER)), before, strict=True))
    owners.change(small, None)
    assert owners.noted((TOPIC, OTHER)) == [None, before[1], None, None]
