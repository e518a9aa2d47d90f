"""Sequences of requests of several principals, beside Apache Kafka's controller with its authorizer.

KRAFTD_CONFORMANCE_SEED and KRAFTD_CONFORMANCE_SEQUENCES try others; `make conformance` plays many.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftd.controller_node.routes import ROWS
from tests.kafka.conformance.run import Run

pytestmark = pytest.mark.kafka
SEED = int(os.environ.get("KRAFTD_CONFORMANCE_SEED", "1"))
SEQUENCES = int(os.environ.get("KRAFTD_CONFORMANCE_SEQUENCES", "45"))
STEPS = 8


def test_random_sequences_give_kafkas_answers_records_and_snapshots(tmp_path: Path) -> None:
    run = Run(STEPS, report=print)
    run.play(tmp_path, range(SEED, SEED + SEQUENCES))
    assert not run.differences, f"{run!r}\n" + "\n".join(run.differences[:5])
    assert not run.seen.different
    apis = {cell.api for counter in (run.seen.same, run.seen.deliberate_cells()) for cell in counter}
    assert {int(row[0]) for row in ROWS} <= apis, "some API was never drawn"
    assert any(cell.enveloped for cell in run.seen.same)
