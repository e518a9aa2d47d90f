"""Transactional copies stay exactly once while brokers of both kinds die and coordinators move.

It takes minutes: `make replication` plays it. `python -m tests.kafka.replication` plays other seeds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testkit.node import Kind
from tests.kafka.replication.exactly_once import INTERNAL, KINDS, play

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.thorough,
]

MINUTES = float(os.environ.get("MINUTES", "0"))
# By the parity of a seed: transaction.version 1 or 2.
RUNS: list[tuple[str, Kind, int]] = [
    ("kraftd-stock-kraftd", "kraftd", 1),
    ("kraftd-stock-kraftd", "kraftd", 2),
    ("stock-kraftd-stock", "kraftd", 3),
    ("stock-kraftd-stock", "apache", 4),
    ("kraftd-alone", "kraftd", 5),
    ("kraftd-alone", "apache", 6),
]


@pytest.mark.parametrize(("kinds", "controller", "seed"), RUNS, ids=str)
def test_copies_are_exactly_once_while_coordinators_move(
    tmp_path: Path, kinds: str, controller: Kind, seed: int
) -> None:
    seen = play(tmp_path, kinds, controller, seed, MINUTES * 60)
    for name in INTERNAL:
        assert seen.leaders[name] == set(KINDS[kinds].values()), "each kind has coordinated"
