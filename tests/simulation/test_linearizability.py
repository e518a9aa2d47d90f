"""Histories of one register that fit an order, and such that do not."""

from __future__ import annotations

from kraftd.simulation.checkers.linearizability import linearizable

CREATED, DELETED = (False, True), (True, False)  # saw, left


def test_steps_one_after_the_other_fit() -> None:
    assert linearizable([(0, 1, *CREATED), (2, 3, *DELETED), (4, 5, *CREATED)])


def test_a_topic_cannot_be_created_twice_in_a_row() -> None:
    assert not linearizable([(0, 1, *CREATED), (2, 3, *CREATED)])


def test_steps_at_one_time_may_take_either_order() -> None:
    assert linearizable([(0, 10, *DELETED), (1, 9, *CREATED)])


def test_real_time_is_kept() -> None:
    assert not linearizable([(0, 1, *DELETED), (2, 3, *CREATED)])


def test_a_step_without_an_answer_may_explain_what_was_seen_later_or_never_happen() -> None:
    unknown = (0, None, None, True)
    assert linearizable([unknown, (5, 6, True, True)])
    assert linearizable([unknown, (5, 6, *CREATED)])
    assert not linearizable([unknown, (5, 6, True, True), (7, 8, *CREATED)])


def test_a_step_without_an_answer_does_not_happen_before_it_began() -> None:
    assert not linearizable([(0, 1, True, True), (2, None, None, True)])
