"""The report: its numbers by Kafka's own classes, its plots whole, and nothing in it from elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftd.spark.cluster_tables import write_small_tables
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.main import main
from kraftd.spark.report import figures, palette
from kraftd.spark.report.page import PARTS, duration_text, make_page
from kraftd.spark.report.plots import DAY_MS, LEFT, MOST_TICKS, RIGHT, WIDTH, TimeAxis, bars, steps
from kraftd.spark.report.written_tables import NAMES, WrittenTables
from kraftd.spark.tables import audit, intervals, moves
from kraftd.wire.batch import iter_batches
from tests.spark.logs import START_MS
from tests.spark.test_planning import written
from tests.spark.three_days import History
from tests.spark.truth import KINDS


def test_each_action_cause_and_kind_has_a_color_of_its_own() -> None:
    actions = set(re.findall(r"'((?:create|delete|set|unregister) [A-Za-z ]+)'", audit.ACTIONS))
    assert actions | {"add partition", "reassign partition", "cancel reassignment"} == set(palette.ACTIONS)
    named = Path(moves.__file__).read_text(encoding="utf-8")
    assert all(f'"{cause}"' in named for cause in palette.CAUSES)
    assert set(moves.CAUSES.values()) < set(palette.CAUSES)
    assert all(f'"{kind}"' in Path(intervals.__file__).read_text(encoding="utf-8") for kind in palette.KINDS)
    for colors in (palette.ACTIONS, palette.CAUSES, palette.KINDS):
        assert len(set(colors.values())) == len(colors)


@pytest.mark.parametrize("seconds", [0, 1, 7, 90, 4_000, 100_000, 300_000, 10**7, 10**9])
def test_the_axis_covers_the_whole_time_with_round_times(seconds: int) -> None:
    axis = TimeAxis(START_MS + 123, START_MS + 123 + seconds * 1000)
    assert axis.x(axis.first_ms) == LEFT and (not seconds or axis.x(axis.last_ms) == WIDTH - RIGHT)
    places = [x for x, _ in axis.ticks()]
    assert len(places) <= MOST_TICKS + 1 and places == sorted(places) and (seconds < 7 or len(places) > 1)
    assert all(LEFT <= x <= WIDTH - RIGHT for x in places)
    assert len({text for _, text in axis.ticks()}) == len(places) or seconds > 100_000


def test_panels_and_bars_do_not_cover_each_other() -> None:
    axis = TimeAxis(START_MS, START_MS + 100_000)
    rows = [{"at_ms": START_MS, "kind": kind, "n": 4} for kind in palette.KINDS]
    floors = re.findall(r"d='M[\d.]+ ([\d.]+)", steps(rows, "n", axis, palette.KINDS, "kind"))
    assert len(set(floors)) == len(palette.KINDS)
    stacked = bars(rows, "n", axis, 1000, palette.KINDS, "kind")
    found = re.findall(r"y='([\d.]+)' width='[\d.]+' height='([\d.]+)'", stacked)
    assert len(found) == len(palette.KINDS)
    for (below, _), (y, height) in pairwise(found):
        assert float(y) + float(height) == pytest.approx(float(below), abs=0.2)
    assert "4 under-replicated</title>" in stacked and "under-replicated 4</li>" in stacked


def test_durations_are_aligned() -> None:
    assert [duration_text(ms) for ms in (0, 61_250, DAY_MS + 3_600_000)] == [
        "00:00:00.0", "00:01:01.2", "1 d 01:00:00.0"
    ]  # fmt: skip


@pytest.mark.spark
def test_a_page_of_a_damaged_log_names_what_it_lacks(tmp_path: Path) -> None:
    directory, page = written(tmp_path / "a"), tmp_path / "report.html"
    data = bytearray(directory.log.read_bytes())
    broken = list(iter_batches(bytes(data)))[2]
    data[broken.position + 70] ^= 0xFF
    directory.log.write_bytes(data)
    words = ["report", "--input", str(directory.path), "--output", str(page)]
    assert CliRunner().invoke(main, words).exit_code == 1 and not page.exists()
    done = CliRunner().invoke(main, [*words, "--mode", "permissive"])
    left_out = (
        f"Damaged and left out: 1 piece. The first is {directory.log}: byte {broken.position}: checksum"
    )
    assert done.exit_code == 2 and left_out in done.stderr and left_out in page.read_text()


@pytest.mark.spark
@pytest.mark.kafka
def test_the_page_has_the_numbers_of_kafkas_states(history: History, tmp_path: Path) -> None:
    replicas = find_replicas([str(history.directory.path)])
    log = committed_log(replicas)
    extent = Extent(log, log.end_offset)
    done: list[str] = []
    write_small_tables(extent, replicas, str(tmp_path), NAMES, done.append)
    tables = WrittenTables(extent, str(tmp_path))
    page = make_page(tables, done.append)
    assert done == [*NAMES, *(title for title, _, _ in PARTS)]
    assert not re.search(r"src=|href=|url\(|@import|<script|https?:", page), "needs no other file"
    last = history.steps[-1].state
    leads = Counter(row["leader"] for row in last["partitions"].values())
    share = sum(leads[broker] for broker in last["brokers"]) / len(last["brokers"])
    found = {row["broker_id"]: row for row in figures.brokers_now(tables)}
    for broker, row in last["brokers"].items():
        assert found[broker]["leads"] == leads[broker] and found[broker]["rack"] == row["rack"]
        assert found[broker]["skew"] == pytest.approx(leads[broker] / share)
        assert found[broker]["fenced"] == row["fenced"]
    assert {broker: row["sessions"] for broker, row in found.items()} == {1: 2, 2: 1, 3: 1, 4: 1}
    assert [row["topic_name"] for row in figures.rack_violations(tables, 2)] == ["one-rack"]
    days = figures.churn_by_day(tables)
    assert [row["day_ms"] for row in days] == sorted({row["day_ms"] for row in days}, reverse=True)
    assert sum(row["leader_moves"] for row in days) == len(history.log.causes) and len(days) == 3
    span = figures.find_span(tables)
    highest: Counter[str] = Counter()
    for row in figures.unhealthy_over_time(tables, span):
        highest[row["kind"]] = max(highest[row["kind"]], row["partitions"])
    for kind, holds in KINDS.items():
        states = (step.state for step in history.steps)
        counts = [
            sum(holds(row, state) is not None for row in state["partitions"].values()) for state in states
        ]
        assert highest[kind] == max(counts), "also of an incident of seconds in days"
    (offline,) = figures.offline_intervals(tables, span)
    assert offline["topic_name"] == "single" and offline["end_timestamp_ms"] is None
    assert offline["lasted_ms"] == history.newest_ms - offline["start_timestamp_ms"] > 0
    worst = figures.worst_partitions(tables, span)
    assert worst[0]["topic_name"] == "single" and worst[0]["offline"] == offline["lasted_ms"]
    assert len(worst) == figures.MOST_WORST == len(last["partitions"])
    order = [(row["offline"], row["under_min_isr"], row["under_replicated"]) for row in worst]
    assert order == sorted(order, reverse=True)
