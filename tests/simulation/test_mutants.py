"""Each planted defect is noticed by the invariant that it breaks, and each invariant notices a defect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kraftd import simulation
from tests.simulation.mutants import (
    brokers,
    compaction,
    consensus,
    consumer_groups,
    control,
    replication,
    sessions,
    share_groups,
    snapshots,
    storage,
    transactions,
)
from tests.simulation.mutants.planted import Planted

MUTANTS: dict[Any, Planted] = {
    **consensus.ALL,
    **snapshots.ALL,
    **storage.ALL,
    **control.ALL,
    **sessions.ALL,
    **brokers.ALL,
    **replication.ALL,
    **transactions.ALL,
    **consumer_groups.ALL,
    **share_groups.ALL,
    **compaction.ALL,
}
SEEDS = 40
# The first world that notices a defect as such, where worlds before it take seconds for nothing, or stop for
# what was lost by it.
FIRST = {
    "begin_every_download_anew": 1,
    "change_voters_at_will": 6,
    "commit_before_truncating": 5,
    "count_what_went_back": 6,
    "give_out_what_was_damaged": 2,
    "hold_on_without_a_quorum": 5,
    "let_a_lagging_follower_join": 7,  # a world that notices while its replicas come to agree
    "let_stale_brokers_in": 2,
    "never_download": 1,
    "scrub_blindly": 1,
    "skip_the_flush_of_a_partition": 10,
    "take_a_lag_for_the_end": 1,
    "trust_the_leaders_mark": 6,
    "vote_for_any_candidate": 5,
    "welcome_every_election": 1,
}
# The names that the simulator's code reports when an invariant is broken.
INVARIANTS = {
    name
    for file in Path(simulation.__path__[0]).rglob("*.py")
    for name in re.findall(r'"([SCLDTKPG]\d+)"', file.read_text())
}


# Their worlds take more than ten seconds of CPU.
SLOW = {
    "answer_no_produce",
    "begin_every_download_anew",
    "keep_one_partition_back",
    "never_download",
}


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, marks=[pytest.mark.thorough] if mutant.__name__ in SLOW else [])
        for mutant in MUTANTS
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_planted_defect_breaks_its_invariant(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = MUTANTS[mutant]
    mutant(monkeypatch)
    first = FIRST.get(mutant.__name__, 0)
    for seed in range(first, first + SEEDS):
        violation = planted.run(seed)
        if violation is not None:
            # The core notices some defects itself: a replica stops when its state is impossible.
            assert violation.invariant in (*planted.noticed_by, "core"), f"seed {seed}: {violation}"
            return
    pytest.fail(f"{SEEDS} seeds from {first} did not notice it")


def test_every_invariant_has_a_defect_that_it_detects_first() -> None:
    covered = {planted.noticed_by[0] for planted in MUTANTS.values()}
    assert not INVARIANTS - covered, f"no mutant for {sorted(INVARIANTS - covered)}"
