"""Random histories keep every invariant; each planted defect breaks one of them."""

from __future__ import annotations

import pytest

from kraftd.raft.replica import ConsensusBroken
from kraftd.raft.transitions import IllegalTransition
from tests.raft import mutants
from tests.raft.nemesis import Nemesis
from tests.raft.world import World

MUTANTS = {
    mutants.count_observers: ("S5", "S6", "S7"),
    mutants.count_one_vote_less: ("S1", "S5"),
    mutants.vote_twice: "S3",
    mutants.vote_for_any_candidate: ("S5", "S6"),
    mutants.count_unsynced: ("S6", "S7"),
    mutants.fetch_unsynced: "S12",
    mutants.commit_old_epochs: "S8",
    mutants.trust_the_leaders_mark: "S7",
    mutants.lead_the_same_epoch_again: "S2",
    mutants.keep_the_diverging_tail: ("S4", "S6", "S7"),
    mutants.truncate_below_the_mark: "S9",
    mutants.answer_twice: "S19",
    mutants.forget_a_parked_fetch: "S19",
    mutants.forget_at_the_deadline: "S19",
    mutants.refuse_no_parked_fetch: "S19",
}


def history(seed: int, *, acts: int = 120) -> bool:
    """Run a random history, then peace; return whether all replicas reach the same state."""
    world = World(seed=seed)
    world.copies_differ = True
    size = {"fetch_snapshot_max_bytes": 40} if seed % 2 else {}  # a download takes a while
    world.add_voters(range(1, 2 + seed % 5), static=bool(seed // 5 % 2), servers=(50,), **size)
    if seed % 3 == 0:
        world.add_observer(50, **size)
    for node_id in list(world.nodes):
        world.start(node_id)
    nemesis = Nemesis(world, seed)
    for _ in range(acts):
        nemesis.act()
    return nemesis.peace()


@pytest.mark.parametrize("seed", range(40))
def test_any_history_keeps_the_invariants_and_ends_with_equal_replicas(seed: int) -> None:
    assert history(seed)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_planted_defect_is_detected(mutant: mutants.Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    for seed in range(60):
        try:
            history(seed)
        except AssertionError as error:
            assert str(error).startswith(MUTANTS[mutant]), f"seed {seed}: {error}"
            return
        except (ConsensusBroken, IllegalTransition):
            return  # the core notices the defect itself
    pytest.fail("60 histories did not notice the defect")
