"""A position advances only by metadata as new as itself, and never skips a truncation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.client.failures import Truncated
from kraftd.client.metadata_cache import Leader
from kraftd.client.position import Position, State


def at(offset: int, epoch: int) -> Position:
    return Position("orders-0", offset, epoch)


def test_a_position_waits_for_metadata_as_new_as_itself() -> None:
    position = at(10, 5)
    assert position.metadata_changed(Leader(1, 4)) is State.WAITING
    assert position.metadata_changed(None) is State.WAITING
    assert position.metadata_changed(Leader(2, 5)) is State.VALIDATING


def test_a_position_without_an_epoch_reads_at_once() -> None:
    assert at(10, -1).metadata_changed(Leader(1, 4)) is State.FETCHING


def test_a_position_is_validated_before_it_reads_in_a_new_leader_epoch() -> None:
    position = at(0, -1)
    position.metadata_changed(Leader(1, 4))
    position.read(10, 4)
    assert position.metadata_changed(Leader(1, 4)) is State.FETCHING
    assert position.metadata_changed(Leader(2, 5)) is State.VALIDATING
    assert position.validated(Leader(2, 5), 4, 12) is State.FETCHING


def test_a_position_is_validated_again_if_the_leader_is_unsure() -> None:
    position = at(10, 4)
    position.metadata_changed(Leader(1, 4))
    position.validated(Leader(1, 4), 4, 10)
    position.leader_unsure()
    assert position.metadata_changed(Leader(1, 4)) is State.VALIDATING


def test_a_validation_by_a_former_leader_is_ignored() -> None:
    position = at(10, 4)
    position.metadata_changed(Leader(1, 4))
    position.metadata_changed(Leader(2, 5))
    assert position.validated(Leader(1, 4), 4, 2) is State.VALIDATING


@pytest.mark.parametrize(
    ("epoch", "end", "common"),
    [(4, 8, 8), (3, 6, 6), (3, 20, 10), (-1, -1, 0)],
    ids=["shorter", "an older epoch", "another history", "nothing in common"],
)
def test_a_truncation_is_reported_with_the_common_prefix(epoch: int, end: int, common: int) -> None:
    position = at(10, 4)
    position.metadata_changed(Leader(2, 5))
    with pytest.raises(Truncated) as error:
        position.validated(Leader(2, 5), epoch, end)
    assert (error.value.position, error.value.end_offset) == (10, common)
    assert "orders-0" in str(error.value) and position.state is State.VALIDATING


def test_a_diverging_epoch_in_a_fetch_response_is_a_truncation() -> None:
    with pytest.raises(Truncated, match="truncated to offset 7"):
        at(10, 4).diverged(3, 7)


def test_a_position_does_not_go_back() -> None:
    with pytest.raises(ValueError):
        at(10, 4).read(9, 4)


@settings(max_examples=100, deadline=None)
@given(
    history=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=8),
    cut=st.integers(0, 60),
    stale=st.lists(st.integers(0, 8), max_size=6),
)
def test_reading_continues_only_if_the_log_still_has_the_records_read(
    history: list[tuple[int, int]], cut: int, stale: list[int]
) -> None:
    """A log is read up to a point; a later leader has it up to a cut, then records of a new epoch."""
    ends, end = [], 0
    for epoch, (_, count) in enumerate(history):
        end += count
        ends.append((epoch, end))
    cut = min(cut, end)
    ends_kept = [(epoch, min(stop, cut)) for epoch, stop in ends if stop - history[epoch][1] < cut]
    new_epoch = len(history)
    log = [*ends_kept, (new_epoch, cut + 5)]
    for epoch, stop in ends:
        position = at(stop, epoch)
        for one in stale:
            if one < epoch:
                assert position.metadata_changed(Leader(1, one)) is State.WAITING
        leader = Leader(2, new_epoch)
        assert position.metadata_changed(leader) is State.VALIDATING
        known = [entry for entry in log if entry[0] <= epoch]
        last_entry = known[-1] if known else (-1, -1)
        if stop <= cut:
            assert position.validated(leader, *last_entry) is State.FETCHING
        else:
            with pytest.raises(Truncated):
                position.validated(leader, *last_entry)
