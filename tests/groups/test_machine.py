"""Random histories of a coordinator, against what must hold."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.groups.machine import GroupMachine

QUICK = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def test_random_histories_keep_offsets_owners_and_records() -> None:
    run_state_machine_as_test(GroupMachine, settings=QUICK)
