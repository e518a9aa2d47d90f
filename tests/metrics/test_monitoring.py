"""The alert rules fire in recorded incidents and never without one; rules and board name existing metrics.

`make incidents` records the incidents anew (`record_incidents`).
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kraftd.metrics.families.exposition import FAMILIES
from tests.metrics.record_incidents import FAULT_S, INCIDENTS, STEP_S

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "monitoring"
RECORDED = Path(__file__).parent / "incidents"
NAME = re.compile(r"\b(?:kafka|kraftd|process)_\w+")
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("", "_count", "_sum"),
    "gauge": ("",),
}
EXPOSED = {f"{family.name}{suffix}" for family in FAMILIES for suffix in SUFFIXES[family.kind]}
OF_THE_PROCESS = {"process_resident_memory_bytes"}
# Every alert that has fired, with the number of its series: for controllers, voters or jobs.
FIRED = 'count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1d]))'

Rule = dict[str, Any]
Series = list[dict[str, str]]


def rules() -> list[Rule]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    return [rule["expr"] for rule in rules()]


def panels() -> list[str]:
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [
        *queries,
        *(one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"),
    ]


@pytest.mark.parametrize("source", [expressions, panels])
def test_rules_and_dashboard_use_only_exposed_metrics(source: object) -> None:
    found = source()  # type: ignore[operator]
    assert len(found) >= 10
    for expression in found:
        names = set(NAME.findall(expression))
        assert names or expression.startswith("up"), expression
        assert names <= EXPOSED | OF_THE_PROCESS, f"{expression}: {names - EXPOSED}"


def test_every_rule_has_its_texts_and_a_section_of_the_page() -> None:
    page = (ROOT / "docs" / "operations" / "alerts.md").read_text()
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description", "runbook"} == set(rule["annotations"])
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{name.lower()}"
        assert f"\n### {name}\n" in page


# -- what fires


EXPECTED: dict[str, dict[str, int]] = {
    "rolling_restart": {},
    "one_down": {"KraftdControllerDown": 1, "KraftdVoterLags": 1},
    "majority_down": {
        "KraftdControllerDown": 2,
        "KraftdNoActiveController": 1,
        "KraftdNotReady": 1,
        "KraftdStandbyLags": 1,
    },
    "all_down": {"KraftdControllerDown": 3, "KraftdAllControllersDown": 1, "KraftdNothingScraped": 1},
    "voter_cut_off": {"KraftdVoterLags": 1, "KraftdNotReady": 1, "KraftdStandbyLags": 1},
    "leader_cut_off": {"KraftdTruncated": 1},
    "disk_full": {
        "KraftdDiskFull": 1,
        "KraftdDiskLow": 1,
        "KraftdVoterLags": 1,
        "KraftdNotReady": 1,
        "KraftdStandbyLags": 1,
    },
    "disk_low": {"KraftdDiskLow": 1},
    "node_refused": {"KraftdNodeRefused": 1},
    "brokers_lost": {"KraftdUnderMinIsr": 1, "KraftdOfflinePartitions": 1, "KraftdFencedBrokers": 1},
}
# What no incident of a quorum on loopback shows: rules fire for series that were made up.
MADE_UP: dict[str, tuple[str, str]] = {
    "KraftdTwins": ('kraftd_troubled_nodes{trouble="twin"}', "0x10 1x400"),
    "KraftdReplicaAhead": ('kraftd_troubled_nodes{trouble="ahead"}', "0x10 1x400"),
    "KraftdReplicaWentBack": ('kraftd_troubled_nodes{trouble="went_back"}', "0x10 1x400"),
    "KraftdWrongAddress": ('kraftd_troubled_nodes{trouble="address"}', "0x10 1x400"),
    "KraftdUncleanElection": (
        "kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec_total{}",
        "0x100 3x300",
    ),
    "KraftdLeaderChanges": ("kafka_controller_KafkaController_NewActiveControllersCount{}", "1x100 1+1x300"),
    "KraftdSlowFsync": (
        'kraftd_fsync_seconds_bucket{le="0.2"} kraftd_fsync_seconds_bucket{le="+Inf"}',
        "0+1x400",
    ),
    "KraftdLogDirectoryFull": ('kraftd_log_directory_full{logDirectory="/data/a"}', "0x100 1x300"),
    "KraftdLogDirectoryOffline": (
        'kafka_log_LogManager_LogDirectoryOffline{logDirectory="/data/a"}',
        "0x100 1x300",
    ),
    "KraftdDamagedFiles": ("kraftd_damaged_files_total{}", "0x100 1x300"),
    "KraftdSnapshotsFail": ("kraftd_snapshots_failed_total{}", "0x100 1x300"),
    "KraftdMetadataErrors": ("kafka_controller_KafkaController_MetadataErrorCount{}", "0x100 1x300"),
    "KraftdCertificateExpires": ("kraftd_certificate_expiry_timestamp_seconds{}", "600000x400"),
}


def recorded(incident: str) -> Series:
    found: Series = yaml.safe_load((RECORDED / f"{incident}.yml").read_text())
    return found


def promtool(folder: Path, found: list[Rule], series: Series, checks: list[dict[str, Any]]) -> str:
    """What promtool complains about, "" for nothing."""
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "kraftd", "rules": found}]}))
    test = {"interval": f"{STEP_S}s", "input_series": series, "promql_expr_test": checks}
    whole = {"rule_files": ["rules.yml"], "evaluation_interval": f"{STEP_S}s", "tests": [test]}
    (folder / "test.yml").write_text(yaml.safe_dump(whole))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def firing(at_s: int, expected: dict[str, int]) -> dict[str, Any]:
    """The check that these alerts have fired until then, and no others."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": count} for name, count in expected.items()]
    return {"expr": FIRED, "eval_time": f"{at_s}s", "exp_samples": samples}


def length_s(series: Series) -> int:
    """The seconds that a record of an incident covers."""
    values = next(one["values"] for one in series if one["series"].startswith("up{"))
    counts = [int(part.partition("x")[2] or 0) + (not part.startswith("_")) for part in values.split()]
    return (sum(counts) - 1) * STEP_S


@pytest.mark.promtool
@pytest.mark.parametrize("incident", EXPECTED)
def test_an_incident_fires_its_alerts_and_no_others(incident: str, tmp_path: Path) -> None:
    series = recorded(incident)
    checks = [firing(FAULT_S, {}), firing(length_s(series), EXPECTED[incident])]
    assert promtool(tmp_path, rules(), series, checks) == ""


@pytest.mark.promtool
@pytest.mark.parametrize("name", MADE_UP)
def test_an_alert_without_an_incident_fires_for_what_it_names(name: str, tmp_path: Path) -> None:
    names, values = MADE_UP[name]
    labels = 'job="kraftd", instance="controller-100:9404"'
    whole = (one.replace("{", f"{{{labels}, ").replace(", }", "}") for one in names.split())
    series = [{"series": one, "values": values} for one in whole]
    found = [rule for rule in rules() if rule["alert"] == name]
    check = firing(400 * STEP_S, {name: 1})
    assert promtool(tmp_path, found, series, [check]) == ""


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    in_incidents = {name for expected in EXPECTED.values() for name in expected}
    assert set(EXPECTED) == set(INCIDENTS)
    assert in_incidents | set(MADE_UP) == {rule["alert"] for rule in rules()}


@pytest.mark.promtool
@pytest.mark.parametrize("name", sorted({name for expected in EXPECTED.values() for name in expected}))
def test_an_incident_shows_that_a_rule_is_broken(name: str, tmp_path: Path) -> None:
    incident, expected = next((one, found) for one, found in EXPECTED.items() if name in found)
    found = [
        {**rule, "expr": f"({rule['expr']}) > 1e18"} if rule["alert"] == name else rule for rule in rules()
    ]
    series = recorded(incident)
    assert name in promtool(tmp_path, found, series, [firing(length_s(series), expected)])


@pytest.mark.promtool
def test_prometheus_accepts_the_rules_and_their_texts() -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            ["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
