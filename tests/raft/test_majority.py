"""Quorum arithmetic against counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftd.raft.quorum.majority import Votes, majority, majority_offset
from kraftd.types import ReplicaKey


@given(st.integers(1, 99))
def test_two_majorities_always_overlap(voters: int) -> None:
    assert 2 * majority(voters) > voters
    assert 2 * (majority(voters) - 1) <= voters


@given(st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=9))
def test_majority_offset_is_the_largest_that_a_majority_has_reached(ends: list[int | None]) -> None:
    reached = [
        offset
        for offset in range(21)
        if sum(end is not None and end >= offset for end in ends) >= majority(len(ends))
    ]
    assert majority_offset(ends) == (max(reached) if reached else None)


def test_an_empty_set_of_voters_has_no_majority() -> None:
    assert majority_offset([]) is None


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=20))
def test_votes_count_each_voter_once_and_no_other_replica(
    voters: int, answers: list[tuple[int, bool]]
) -> None:
    votes = Votes([ReplicaKey(one) for one in range(voters)], 0)
    counted = {0: True}
    for voter_id, granted in answers:
        votes.record(voter_id, granted)
        if voter_id < voters:
            counted.setdefault(voter_id, granted)
    granting = sum(counted.values())
    assert votes.granting == sorted(one for one, granted in counted.items() if granted)
    assert votes.won == (granting >= majority(voters))
    assert votes.lost == (granting + voters - len(counted) < majority(voters))
    assert not (votes.won and votes.lost)
