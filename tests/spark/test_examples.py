"""The questions of `examples/` are answered as Kafka's own classes answer them.

Apache Kafka's controller decides what happens in the log, and its image classes tell the state after each
record. From these states each answer is worked out again, one record at a time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kraftd.messages.partition_change_record import PartitionChangeRecord
from tests.spark.three_days import History
from tests.spark.truth import Step, is_under_replicated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "metadata_questions.py"


def at(step: Step) -> datetime:
    return datetime.fromtimestamp(step.timestamp_ms / 1000, UTC).replace(tzinfo=None)


def cells(path: Path) -> list[str]:
    return re.split(r"(?m)^(?=# %%)", path.read_text(encoding="utf-8"))[1:]


@pytest.fixture(scope="module")
def answers(spark: SparkSession, history: History) -> dict[str, list[tuple[Any, ...]]]:
    """What the notebook's cells find, run one by one, about the first incident."""
    step = next(step for step in history.steps if step.offset == history.incident)
    moment = {"AT": datetime.fromtimestamp(step.timestamp_ms / 1000, UTC), "OFFSET": step.offset}
    names: dict[str, Any] = {}
    shown: list[tuple[DataFrame, list[tuple[Any, ...]]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRAFT_LOG", str(history.directory.path))
        patch.setattr(type(spark.range(1)), "show", lambda rows, **_: shown.append((rows, told(rows))))
        for cell in cells(NOTEBOOK):
            exec(compile(cell, str(NOTEBOOK), "exec"), names)
            if "parameters" in cell.splitlines()[0]:
                assert set(moment) < set(names)
                names |= moment
    assert names["spark"] is spark
    return {name: rows for name, value in names.items() for one, rows in shown if one is value}


def told(rows: DataFrame) -> list[tuple[Any, ...]]:
    return list(map(tuple, rows.collect()))


def test_partitions_under_replicated_at_a_time_and_how_long(answers: Any, history: History) -> None:
    number, step = next((n, step) for n, step in enumerate(history.steps) if step.offset == history.incident)
    expected = []
    for key, row in step.state["partitions"].items():
        missing = is_under_replicated(row, step.state)
        if missing:
            first, end = history.lasting(key, number, lambda row: is_under_replicated(row, {}))
            seconds = history.seconds(first, end)
            expected.append(
                (row["topic_name"], key[1], missing, at(first), None if end is None else at(end), seconds)
            )
    assert sorted(answers["under_replicated"]) == sorted(expected) and len(expected) == 5


def test_leader_moves_by_broker_and_cause(answers: Any, history: History) -> None:
    expected: Counter[tuple[int, str]] = Counter()
    for before, step in history.truth.changed():
        for key, row in step.state["partitions"].items():
            old = before["partitions"].get(key)
            if old is not None and old["leader"] != row["leader"] and old["leader"] >= 0:
                expected[old["leader"], history.log.causes[step.offset]] += 1
    assert {(broker, cause): count for broker, cause, count in answers["moves"]} == expected
    assert {cause for _, cause in expected} == {"broker fenced", "controlled shutdown", "preferred election"}


def test_access_to_a_topic_at_an_offset(answers: Any, history: History) -> None:
    step = next(step for step in history.steps if step.offset == history.incident)
    expected = set()
    for acl in step.state["acls"].values():
        name = acl["resource_name"]
        is_prefix = acl["pattern_type_name"] == "PREFIXED" and "orders".startswith(name)
        covers = name in ("orders", "*") or is_prefix
        if acl["resource_type_name"] == "TOPIC" and acl["operation_name"] in ("READ", "ALL") and covers:
            expected.add((acl["permission_type_name"], acl["principal"], acl["host"]))
    assert set(answers["access"]) == expected
    assert {principal for _, principal, _ in expected} == {
        "User:app", "User:gone", "User:prefix", "User:banned"
    }  # fmt: skip


def test_churn_a_day(answers: Any, history: History) -> None:
    days: defaultdict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for before, step in history.truth.changed():
        if isinstance(step.message, PartitionChangeRecord):
            key = next(key for key in step.state["partitions"] if changed(before, step, key))
            old, new = before["partitions"][key], step.state["partitions"][key]
            counts = days[at(step).date()]
            counts[0] += 1
            counts[1] += bool(set(old["isr"]) - set(new["isr"]))
            counts[2] += bool(set(new["isr"]) - set(old["isr"]))
            counts[3] += old["leader"] != new["leader"]
    assert answers["churn"] == [(day, *counts) for day, counts in sorted(days.items())]
    assert len(days) == 3 and all(counts[3] for counts in days.values())


def changed(before: Any, step: Step, key: Any) -> bool:
    return before["partitions"].get(key) != step.state["partitions"][key]


def test_config_changes(answers: Any, history: History) -> None:
    expected = []
    for before, step in history.truth.changed():
        for key in before["configs"].keys() | step.state["configs"].keys():
            old, new = (state["configs"].get(key, {}).get("value") for state in (before, step.state))
            if old != new:
                kind = {2: "TOPIC", 4: "BROKER"}[key[0]]
                expected.append((step.offset, at(step), kind, key[1], key[2], old, new))
    assert answers["config_changes"] == expected and len(expected) == 4


def test_mean_time_in_isr_by_broker(answers: Any, history: History) -> None:
    since: dict[Any, Step] = {}
    times: defaultdict[int, list[float]] = defaultdict(list)
    for step in history.steps:
        parts = step.state["partitions"].items()
        members = {(*key, broker) for key, row in parts for broker in row["isr"]}
        for member in since.keys() - members:
            times[member[2]].append(history.seconds(since.pop(member), step))
        since |= dict.fromkeys(members - since.keys(), step)
    still: Counter[int] = Counter(member[2] for member in since)
    for member, first in since.items():
        times[member[2]].append(history.seconds(first, None))
    assert answers["mean_time_in_isr"] == [
        (broker, len(of_it), still[broker], pytest.approx(sum(of_it) / len(of_it)))
        for broker, of_it in sorted(times.items())
    ]


def test_leader_skew(answers: Any, history: History) -> None:
    last = history.steps[-1].state
    leads = Counter(row["leader"] for row in last["partitions"].values())
    preferred = Counter(row["replicas"][0] for row in last["partitions"].values())
    share = sum(leads[broker] for broker in last["brokers"]) / len(last["brokers"])
    expected = [
        (
            broker,
            row["rack"],
            row["fenced"],
            leads[broker],
            preferred[broker],
            round(leads[broker] / share, 2),
        )
        for broker, row in last["brokers"].items()
    ]
    assert answers["leader_skew"] == sorted(expected, key=lambda row: (-row[3], row[0]))


def test_offline_partitions_and_since_when(answers: Any, history: History) -> None:
    last = history.steps[-1].state["partitions"]
    expected = []
    for key, row in last.items():
        if row["leader"] == -1:
            first, _ = history.lasting(key, len(history.steps) - 1, lambda row: row["leader"] == -1)
            expected.append((row["topic_name"], key[1], row["replicas"], row["isr"], at(first)))
    assert answers["offline"] == expected and len(expected) == 1


def test_reassignments_in_flight_since_when(answers: Any, history: History) -> None:
    last, expected = len(history.steps) - 1, []
    for key, row in history.steps[-1].state["partitions"].items():
        if row["adding_replicas"] or row["removing_replicas"]:
            first, _ = history.lasting(
                key, last, lambda row: row["adding_replicas"] + row["removing_replicas"]
            )
            old = history.steps[history.steps.index(first) - 1].state["partitions"][key]["replicas"]
            target = [broker for broker in row["replicas"] if broker not in row["removing_replicas"]]
            expected.append((row["topic_name"], key[1], old, target, at(first)))
    assert answers["in_flight"] == sorted(expected) and len(expected) == 2


def test_topics_that_violate_racks(answers: Any, history: History) -> None:
    last = history.steps[-1].state
    racks = {broker: row["rack"] for broker, row in last["brokers"].items()}
    expected: Counter[str] = Counter()
    for row in last["partitions"].values():
        used = {racks[broker] for broker in row["replicas"]}
        expected[row["topic_name"]] += len(used) < min(len(row["replicas"]), len(set(racks.values())))
    assert dict(answers["rack_violations"]) == +expected == {"one-rack": 2}
