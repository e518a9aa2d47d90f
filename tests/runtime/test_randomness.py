"""Randomness of the daemon: no uuid occurs twice, and numbers stay below their bound."""

from __future__ import annotations

import uuid

from kraftd.runtime.randomness import LAST_SESSION_ID, UUIDS_PER_DRAW, SystemRandomness


def test_uuids_of_several_draws_are_distinct_and_of_version_4() -> None:
    rng = SystemRandomness()
    drawn = [rng.uuid() for _ in range(3 * UUIDS_PER_DRAW + 1)]
    assert len(set(drawn)) == len(drawn)
    assert {uuid.UUID(bytes=one).version for one in drawn} == {4}


def test_all_numbers_below_a_bound_are_drawn_and_no_others() -> None:
    rng = SystemRandomness()
    assert {rng.below(3) for _ in range(500)} == {0, 1, 2}
    assert rng.below(1) == 0


def test_a_session_id_is_random_and_positive__kip227() -> None:
    drawn = {rng.session_id() for rng in (SystemRandomness(), SystemRandomness()) for _ in range(100)}
    assert len(drawn) > 190 and all(0 < one < LAST_SESSION_ID for one in drawn)
    assert max(drawn) - min(drawn) > LAST_SESSION_ID // 2
