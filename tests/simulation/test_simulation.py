"""A seed makes one world and one trace, which shrinks when it fails and leaves nothing behind."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

from kraftd.answers.log_source import LogSource
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.simulation.cluster import Host
from kraftd.simulation.options import SHORT, draw_options
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.run import run_seed
from kraftd.simulation.schedule import MS, Clock, Schedule
from kraftd.simulation.shrink import planned, shrink
from tests.simulation.mutants import consensus


@pytest.mark.parametrize("seed", [3, 17, 151, 258])
def test_one_seed_gives_one_trace(seed: int) -> None:
    assert run_seed(seed).digest == run_seed(seed).digest


def test_writing_the_trace_as_text_does_not_change_the_history() -> None:
    lines: list[str] = []
    assert run_seed(22, echo=lines.append).digest == run_seed(22).digest
    assert lines


@pytest.mark.thorough
def test_a_world_leaves_no_objects_in_memory() -> None:
    others = _hosts()  # objects that earlier tests still hold
    for seed in range(2000, 2003):
        run_seed(seed)
    assert not [one for one in _hosts() if not any(one is other for other in others)]


def _hosts() -> list[Host]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, Host)]


def test_different_seeds_give_different_traces() -> None:
    assert len({draw_options(seed) for seed in range(50)}) == 50
    assert SeededRandomness(1, "a").uuid() != SeededRandomness(1, "b").uuid()


def test_a_failure_shrinks_to_fewer_faults_with_the_same_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    consensus.hold_on_without_a_quorum(monkeypatch)
    outcome = next(one for seed in range(60) if (one := run_seed(seed)).failed and len(planned(one)) > 4)
    faults = shrink(outcome, most_runs=25)
    assert len(faults) < len(planned(outcome))
    assert run_seed(outcome.seed, faults).invariant == outcome.invariant


def test_actions_of_one_moment_run_in_the_order_of_their_planning() -> None:
    schedule, numbers = Schedule(), []
    for number in range(5):
        schedule.at(10, numbers.append, number)
    schedule.run_until(11)
    assert numbers == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rate_ppm", [-50_000, 0, 50_000])
def test_a_clock_computes_when_it_will_show_a_time(rate_ppm: int) -> None:
    clock = Clock(1_700_000_000_000 * MS, rate_ppm)
    clock.start(5_000_000)
    due_ms = clock.now_ms(5_000_000) + 1_234
    moment_us = clock.when_us(due_ms)
    assert clock.now_ms(moment_us) >= due_ms > clock.now_ms(moment_us - 2)


@pytest.mark.parametrize("broken", ["controller", "client side"])
def test_a_fault_that_a_node_survives_fails_its_world(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    owner: Any = Decisions if broken == "controller" else LogSource
    name = "decide" if broken == "controller" else "read"
    real, calls = getattr(owner, name), itertools.count()

    def sometimes(*arguments: Any, **more: Any) -> Any:
        if next(calls) == 20:
            raise ZeroDivisionError("planted")
        return real(*arguments, **more)

    monkeypatch.setattr(owner, name, sometimes)
    outcome = run_seed(15 if broken == "controller" else 0, kind=SHORT)
    assert next(calls) > 20
    assert (outcome.invariant, outcome.text) == ("error", "ZeroDivisionError: planted")
