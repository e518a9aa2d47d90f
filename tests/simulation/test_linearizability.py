"""Histories of one register that fit a sequential order, and histories that fit none."""

from __future__ import annotations

from kraftd.simulation.checkers.linearizability import linearizable

CREATED, DELETED = (False, True), (True, False)  # the state before the step, the state after it


def test_sequential_steps_fit() -> None:
    assert linearizable([(0, 1, *CREATED), (2, 3, *DELETED), (4, 5, *CREATED)])


def test_a_topic_cannot_be_created_twice_in_a_row() -> None:
    assert not linearizable([(0, 1, *CREATED), (2, 3, *CREATED)])


def test_concurrent_steps_may_take_either_order() -> None:
    assert linearizable([(0, 10, *DELETED), (1, 9, *CREATED)])


def test_the_order_of_real_time_is_respected() -> None:
    assert not linearizable([(0, 1, *DELETED), (2, 3, *CREATED)])


def test_a_step_without_an_answer_may_have_happened_or_not() -> None:
    unknown = (0, None, None, True)
    assert linearizable([unknown, (5, 6, True, True)])
    assert linearizable([unknown, (5, 6, *CREATED)])
    assert not linearizable([unknown, (5, 6, True, True), (7, 8, *CREATED)])


def test_a_step_without_an_answer_does_not_happen_before_it_began() -> None:
    assert not linearizable([(0, 1, True, True), (2, None, None, True)])


def test_a_write_that_returns_no_value_fits_after_any_state() -> None:
    assert linearizable([(0, 1, None, "a"), (2, 3, "a", "a")], "")
    assert not linearizable([(0, 1, None, "a"), (2, 3, "", "")], "")
    assert linearizable([(0, 9, None, "a"), (1, 2, "", ""), (3, 4, "a", "a")], "")


def test_no_client_reads_an_old_value_after_a_new_one() -> None:
    writes = [(0, 1, None, "a"), (2, 9, None, "b")]
    assert linearizable([*writes, (3, 4, "a", "a"), (5, 6, "b", "b")], "")
    assert not linearizable([*writes, (3, 4, "b", "b"), (5, 6, "a", "a")], "")
