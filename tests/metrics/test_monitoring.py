"""The alert rules and the dashboard name existing metrics, and Prometheus accepts the rules unchanged."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kraftd.metrics.exposition import FAMILIES

FOLDER = Path(__file__).resolve().parents[2] / "monitoring"
NAME = re.compile(r"\b(?:kafka|kraftd|process)_\w+")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
EXPOSED = {f"{family.name}{suffix}" for family in FAMILIES for suffix in SUFFIXES[family.kind]}
OF_THE_PROCESS = {"process_resident_memory_bytes"}


def rules() -> list[str]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def panels() -> list[str]:
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [
        *queries,
        *(one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"),
    ]


@pytest.mark.parametrize("expressions", [rules, panels])
def test_rules_and_dashboard_use_only_exposed_metrics(expressions: object) -> None:
    found = expressions()  # type: ignore[operator]
    assert len(found) >= 10
    for expression in found:
        names = set(NAME.findall(expression))
        assert names, expression
        assert names <= EXPOSED | OF_THE_PROCESS, f"{expression}: {names - EXPOSED}"


@pytest.mark.promtool
def test_prometheus_accepts_the_rules_and_their_tests_pass() -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            ["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
