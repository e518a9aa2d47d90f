"""The table of states: every transition in it keeps the rules, and no other transition exists."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.raft.transitions import (
    RAISES_EPOCH,
    TRANSITIONS,
    Cause,
    IllegalTransition,
    State,
    check,
    diagram,
)

EPOCHS = st.integers(0, 1 << 31)


@given(st.sampled_from(State), st.sampled_from(Cause), EPOCHS, EPOCHS)
def test_every_state_and_cause_is_a_transition_of_the_table_or_an_error(
    state: State, cause: Cause, epoch: int, new_epoch: int
) -> None:
    try:
        target = check(state, cause, epoch, new_epoch)
    except IllegalTransition:
        legal = (state, cause) in TRANSITIONS
        rises = (state, cause) in RAISES_EPOCH
        assert not legal or (new_epoch <= epoch if rises else new_epoch != epoch)
    else:
        assert target is TRANSITIONS[state, cause]
        assert new_epoch >= epoch


def test_only_a_candidate_becomes_leader_and_only_a_pre_vote_winner_a_candidate() -> None:
    into = {target: {state for (state, _), to in TRANSITIONS.items() if to is target} for target in State}
    assert into[State.LEADER] == {State.CANDIDATE}
    assert into[State.CANDIDATE] == {State.PROSPECTIVE}
    assert into[State.RESIGNED] == {State.LEADER}


def test_leader_leaves_by_resigning_or_by_a_higher_epoch() -> None:
    causes = {cause for state, cause in TRANSITIONS if state is State.LEADER}
    assert causes == {Cause.RESIGNATION, Cause.HIGHER_EPOCH, Cause.LEADER_OF_HIGHER_EPOCH}


def test_resigned_is_entered_again_in_its_epoch_only_by_a_start() -> None:
    for state, cause in TRANSITIONS:
        if state is State.RESIGNED and (state, cause) not in RAISES_EPOCH:
            assert cause is Cause.STARTED


@pytest.mark.parametrize("state", State)
def test_no_state_is_a_dead_end(state: State) -> None:
    reached, todo = {state}, [state]
    while todo:
        at = todo.pop()
        for (source, _), target in TRANSITIONS.items():
            if source is at and target not in reached:
                reached.add(target)
                todo.append(target)
    assert reached == set(State)


def test_diagram_in_the_docs_is_drawn_from_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "raft.md"
    assert f"```mermaid\n{diagram()}\n```" in page.read_text()
