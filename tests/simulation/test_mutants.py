"""Each planted defect is noticed by the invariant that it breaks."""

from __future__ import annotations

import pytest

from kraftd.simulation.run import run_seed
from tests.simulation.mutants import consensus, control, storage

MUTANTS = {**consensus.ALL, **storage.ALL, **control.ALL}
SEEDS = 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_planted_defect_is_noticed(mutant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)  # type: ignore[operator]
    expected = MUTANTS[mutant]  # type: ignore[index]
    for seed in range(SEEDS):
        outcome = run_seed(seed)
        if outcome.failed:
            # The core refuses some of it itself: a replica that sees the impossible stops.
            assert outcome.invariant in (expected if isinstance(expected, tuple) else (expected,)) + (
                "core",
            ), f"seed {seed}: {outcome!r}"
            return
    pytest.fail(f"{SEEDS} seeds did not notice it")
