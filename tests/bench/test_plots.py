"""The plots of the benchmarks show every figure, and a run changes only the figures that it measures."""

from __future__ import annotations

import json
from pathlib import Path

from bench.figures import FIGURES
from bench.plots import GROUPS, draw, remember

REPORT = {
    "kraftd": {"failover_killed_p50_ms": 28.0, "scale_partitions_per_s": 50.0, "scale_fence_records": 30.0},
    "apache": {"failover_killed_p50_ms": 2846.0, "scale_partitions_per_s": 60.0, "scale_fence_records": 30.0},
}


def test_every_figure_is_in_one_plot() -> None:
    homes = {
        key: [group for group, (_, begins) in GROUPS.items() if key.startswith(begins)] for key in FIGURES
    }
    assert {key: groups for key, groups in homes.items() if len(groups) != 1} == {}


def test_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    first = {path.name: path.read_bytes() for path in draw(REPORT, tmp_path)}
    again = {path.name: path.read_bytes() for path in draw(REPORT, tmp_path)}
    assert sorted(first) == ["failover.svg", "scale.svg"]
    assert first == again
    assert b"101.6x" in first["failover.svg"]


def test_explanatory_and_one_sided_figures_have_no_bar(tmp_path: Path) -> None:
    one_side = {"kraftd": {**REPORT["kraftd"], "scale_stalls": 3.0}, "apache": REPORT["apache"]}
    (scale,) = [path for path in draw(one_side, tmp_path) if path.name == "scale.svg"]
    text = scale.read_text()
    assert "partitions created per second" in text
    assert "partitions changed" not in text
    assert "stalls" not in text


def test_a_run_replaces_its_older_figures_and_keeps_the_others(tmp_path: Path) -> None:
    remember(REPORT, tmp_path)
    newer = {"kraftd": {"scale_partitions_per_s": 70.0}, "apache": {"scale_partitions_per_s": 61.0}}
    figures = remember(newer, tmp_path)
    assert figures["kraftd"] == {**REPORT["kraftd"], "scale_partitions_per_s": 70.0}
    assert json.loads((tmp_path / "figures.json").read_text()) == figures


def test_less_time_and_more_work_are_better() -> None:
    assert FIGURES["failover_killed_p50_ms"].times_better(10, 100) == 10
    assert FIGURES["scale_partitions_per_s"].times_better(200, 100) == 2
    assert FIGURES["scale_partitions_per_s"].times_better(0, 100) is None
