"""Worlds that lose a majority of their voters and continue from one survivor keep every invariant."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kraftd.host.storage import Storage
from kraftd.metadata_dir.rescue import new_epoch, sole_voter
from kraftd.simulation.lost_majority import run_lost_majority

SEEDS = range(20, 40)  # everything below happens in them
MOST_SEEDS = 40
HAPPENS = (
    "majority lost",
    "crash in recovery",
    "lost voter comes back",
    "comes back ahead of the quorum",
    "ended ahead of the quorum",
    "directory ahead formatted anew",
    "records ahead discarded",
    "voter added",
    "snapshot loaded",
)


def take_the_next_epoch(patch: Any) -> None:
    """The recovery does not raise the epoch above epochs that only the lost voters know."""
    patch.setattr(new_epoch, "EPOCH_STEP", 1)


def keep_the_voters(patch: Any) -> None:
    """The recovery names no voters, so the lost ones still count."""
    batch = sole_voter._batch
    patch.setattr(sole_voter, "_batch", lambda node_id, voters, *rest: batch(node_id, None, *rest))


def sync_nothing(patch: Any) -> None:
    """The recovery ends before its records are durable."""
    opening = sole_voter.open_log

    def without_sync(*arguments: Any) -> Any:
        opened = opening(*arguments)
        patch.setattr(opened.log, "sync", lambda: None)
        return opened

    patch.setattr(sole_voter, "open_log", without_sync)


def forget_the_high_watermark(patch: Any) -> None:
    """K1: a process does not read up to where the one before it knew its log as committed."""
    durable_state = Storage.durable_state

    def forgotten(self: Storage, *static_voters: Any) -> Any:
        found = durable_state(self, *static_voters)
        found.committed = 0
        return found

    patch.setattr(Storage, "durable_state", forgotten)


MUTANTS: dict[Any, tuple[tuple[str, ...], int]] = {  # the invariants that notice it, and the first seed
    take_the_next_epoch: (("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "core"), 151),
    keep_the_voters: (("L1",), 4),
    sync_nothing: (("D1",), 0),
    forget_the_high_watermark: (("K1",), 10),
}


def test_every_invariant_holds_after_a_majority_was_lost() -> None:
    kinds: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = run_lost_majority(seed)
        assert not outcome.failed, f"{outcome!r} in {outcome.world}: {outcome.command} --trace"
        kinds.update(outcome.kinds)
    missing = [kind for kind in HAPPENS if not kinds[kind]]
    assert not missing, f"never happened in {SEEDS}: {missing}"


def test_one_seed_gives_one_trace_before_and_after_the_loss() -> None:
    assert run_lost_majority(7).digest == run_lost_majority(7).digest


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_planted_defect_of_a_recovery_is_detected(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    invariants, first = MUTANTS[mutant]
    mutant(monkeypatch)
    for seed in range(first, first + MOST_SEEDS):
        outcome = run_lost_majority(seed)
        if outcome.failed:
            assert outcome.invariant in invariants, f"seed {seed}: {outcome!r}"
            return
    pytest.fail(f"{MOST_SEEDS} seeds did not notice it")
