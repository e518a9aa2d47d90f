"""Hostile load with small numbers: no leader is deposed, and the benchmark measures and draws it."""

from __future__ import annotations

import json
import random
from argparse import Namespace
from pathlib import Path

from bench.hostile import plot
from bench.hostile.__main__ import measure, table
from bench.hostile.quorum import HOSTILE_HOST, attacked
from bench.hostile.rows import LARGEST_BYTES, random_frame

REQUESTS = 60
# Starved of processor time by other work, nodes lose their leader within the default of two seconds.
PATIENT = {"controller.quorum.fetch.timeout.ms": 10_000, "controller.quorum.election.timeout.ms": 5_000}
ALL_S = 600  # until all requests are made


def test_random_hostile_requests_depose_no_leader() -> None:
    """Of any API, version, size and principal, to leader and followers, in plaintext and over TLS."""
    options = Namespace(seconds=ALL_S, settle=0, follower=False, elements=REQUESTS, source=HOSTILE_HOST)
    with attacked("kraftd", with_broker=False, properties=PATIENT) as nodes:
        found = measure(nodes, "random", 4, options)
    assert found["depositions"] == 0
    assert found["made"] > REQUESTS / 2
    assert table({"random x4": {"kraftd": found}}).row_count == 1


def test_random_frames_have_their_length_and_many_sizes() -> None:
    frames = [random_frame(random.Random(seed)) for seed in range(40)]
    assert all(int.from_bytes(frame[:4], "big") == len(frame) - 4 for frame in frames)
    assert min(map(len, frames)) < 200
    assert 20_000 < max(map(len, frames)) < 2 * LARGEST_BYTES
    assert random_frame(random.Random(3)) == frames[3]


def test_the_plot_keeps_other_sides_and_shows_epochs(tmp_path: Path) -> None:
    before = {"CreateTopics x1": {"before": {"fetch_max_ms": 8_000.0, "depositions": 3}}}
    after = {"CreateTopics x1": {"kraftd": {"fetch_max_ms": 12.0, "depositions": 0}}}
    plot.remember(before, tmp_path)
    results = plot.remember(after, tmp_path)
    assert results == json.loads((tmp_path / "hostile.json").read_text())
    first = plot.draw(results, tmp_path).read_bytes()
    assert b"8,000 ms, 3 new epochs" in first and b"12 ms<" in first
    assert plot.draw(results, tmp_path).read_bytes() == first
