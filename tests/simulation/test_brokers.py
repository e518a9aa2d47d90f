"""Brokers beside the quorum keep their invariants in some worlds; `kraftd sim --brokers` runs others."""

from __future__ import annotations

import pytest

from kraftd.simulation.options import BROKER_OUTCOMES, DATA_FAULTS, REPLICA_OUTCOMES, WorldKind
from kraftd.simulation.run import Summary, run_seed
from tests.simulation.mutants import brokers

SEEDS = (*range(10, 22), 9321)  # 9321: a coordinator that was cut off is asked for commits


def test_every_invariant_holds_in_worlds_with_brokers() -> None:
    summary = Summary()
    for seed in SEEDS:
        outcome = run_seed(seed, kind=WorldKind(short=True, brokers=True))
        assert not outcome.failed, f"{outcome!r} in {outcome.world}: {outcome.command} --trace"
        summary.add(outcome)
    assert any(summary.kinds[kind] for kind in DATA_FAULTS)
    assert summary.kinds["records consumed"] and summary.kinds["offsets committed"]
    assert any(summary.kinds[kind] for kind in BROKER_OUTCOMES)
    missing = [kind for kind in ("isr shrank", "isr grew", "leader moved") if not summary.kinds[kind]]
    assert not missing, f"never happened: {missing}"
    assert any(summary.kinds[kind] for kind in REPLICA_OUTCOMES[3:])


def test_one_seed_gives_one_trace() -> None:
    first, second = (run_seed(3, kind=WorldKind(short=True, brokers=True)) for _ in range(2))
    assert first.digest == second.digest


def test_a_log_that_is_offline_for_damage_without_a_flipped_bit_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was not flushed is torn."""
    brokers.skip_the_flush_of_a_partition(monkeypatch)
    violation = brokers.ALL[brokers.skip_the_flush_of_a_partition].run(3)
    assert violation is not None and violation.invariant == "P4", violation
