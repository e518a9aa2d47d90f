"""Shrinks a failure to the fewest planned faults that still break the same invariant.

Faults draw from numbers of their own, so removing one does not change the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.simulation.faults.nemesis import Fault, plan_faults
from kraftd.simulation.run import Outcome, run_seed
from kraftd.simulation.world import World

MAX_RUNS = 300


def planned(outcome: Outcome) -> list[Fault]:
    """The faults that the world of an outcome plans."""
    return list(plan_faults(World(outcome.seed, faults=(), kind=outcome.kind)))


def shrink(outcome: Outcome, most_runs: int = MAX_RUNS) -> list[Fault]:
    """The faults that break the same invariant; the whole plan if none can be removed."""
    faults = planned(outcome)
    runs = 0

    def fails(some: Sequence[Fault]) -> bool:
        nonlocal runs
        runs += 1
        return run_seed(outcome.seed, some, kind=outcome.kind).invariant == outcome.invariant

    size = max(1, len(faults) // 2)
    while runs < most_runs:
        shorter = False
        at = 0
        while at < len(faults) and runs < most_runs:
            rest = faults[:at] + faults[at + size :]
            if fails(rest):
                faults, shorter = rest, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2) if not shorter or size > 1 else 1
    return faults
