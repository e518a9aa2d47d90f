"""`kraftd sim` prints a seed's result and the command to run it again, and ends with 1 after a violation."""

from __future__ import annotations

import pytest

from kraftd.cli import simulate
from kraftd.simulation.options import LOADS
from tests.cli.run import run
from tests.simulation.mutants import consensus


def test_a_seed_without_a_violation_is_reported_as_such() -> None:
    ended = run("sim", "--seed", 17)
    assert ended.code == 0
    assert "Every invariant held." in ended.out


def test_a_trace_shows_every_event() -> None:
    ended = run("sim", "--seed", 17, "--trace")
    assert ended.code == 0
    assert "Started" in ended.out
    assert ended.out.count("\n") > 5_000


def test_a_trace_is_of_one_seed() -> None:
    ended = run("sim", "--trace")
    assert ended.code == 2
    assert "--seed" in ended.err


@pytest.mark.parametrize("several", ["--seeds", "--first", "--jobs"])
def test_one_seed_is_not_several(several: str) -> None:
    ended = run("sim", "--seed", 17, several, 2)
    assert ended.code == 2
    assert f"leave {several} out" in ended.err


def test_the_results_of_several_seeds_are_summed() -> None:
    ended = run("sim", "--short", "--first", 2000, "--seeds", 4)
    assert ended.code == 0
    assert "Seeds: 4, failed: 0" in ended.out
    assert "worlds of consensus cores" in ended.out


def test_seeds_have_the_same_results_in_many_processes() -> None:
    some, others = (run("sim", "--short", "--first", 2000, "--seeds", 4, "--jobs", jobs) for jobs in (1, 2))
    happened = "What happened"
    assert some.out[some.out.index(happened) :] == others.out[others.out.index(happened) :]


def test_a_seed_that_fails_prints_invariant_fewest_faults_and_how_to_run_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consensus.vote_before_it_is_durable(monkeypatch)
    ended = run("sim", "--first", 2001, "--seeds", 2)
    assert ended.code == 1
    assert "FAILED seed 2001: S3: " in ended.out
    assert "planned faults are enough" in ended.out
    assert "  kraftd sim --seed 2001 --trace" in ended.out


def test_a_shorter_world_is_a_different_one_of_the_same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = (run("sim", "--seed", 17, *more) for more in ((), ("--short",)))
    assert short.code == 0
    assert long.out != short.out
    consensus.vote_before_it_is_durable(monkeypatch)
    assert "  kraftd sim --short --seed 17 --trace" in run("sim", "--short", "--seed", 17, "--no-shrink").out


def test_worlds_with_brokers_have_the_loads_that_are_named() -> None:
    assert sorted(LOADS) == sorted(simulate.LOADS)
    named = ("--load", "share groups", "--load", "consumer groups")
    ended = run("sim", "--brokers", "--short", "--seed", 728202, *named)
    assert ended.code == 0
    assert "consumer groups and share groups, " in ended.out


def test_loads_are_of_worlds_with_brokers() -> None:
    ended = run("sim", "--load", "share groups")
    assert ended.code == 2
    assert "--brokers" in ended.err
