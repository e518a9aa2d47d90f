"""The tables that the driver makes of small logs, without Spark.

Here they are compared with a naive replay; `rows_of` compares them with Spark's in all other tests of tables.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.spark import divided_tables
from kraftd.spark.cluster_tables import DAMAGED, write_small_tables
from kraftd.spark.divided_tables import need_no_spark, write_divided_tables
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.inputs.storage import open_parquet
from kraftd.spark.replay import divided as divided_replay
from kraftd.spark.replay.audit import double_text
from kraftd.spark.replay.catalog import table
from kraftd.spark.replay.processes import in_processes
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import NAMES
from kraftd.spark.tables.columns import schema_of
from tests.spark.images import Rows
from tests.spark.test_planning import written
from tests.spark.test_tables import Story
from tests.spark.test_truth import behind_a_checkpoint, compare, plain, truth_of


def replayed(path: Path) -> dict[str, Rows]:
    log = committed_log(find_replicas([str(path)]))
    replay = Replay(Extent(log, log.end_offset))
    return {name: plain(name, table(name, replay, [log.replica]).to_pylist()) for name in NAMES}


@pytest.mark.parametrize("seed", range(30, 34))
def test_every_table_of_a_random_history_is_that_of_a_naive_replay(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path / "node", seed=seed)
    compare(replayed(story.directory.path), truth_of(story.directory.path))


def test_every_table_of_a_log_behind_a_checkpoint_is_that_of_a_naive_replay(tmp_path: Path) -> None:
    path, truth = behind_a_checkpoint(tmp_path, seed=34)
    compare(replayed(path), truth)


def divided(path: Path, output: Path) -> dict[str, Rows]:
    """The tables that several processes make, a few records at a time."""
    replicas = find_replicas([str(path)])
    log = committed_log(replicas)
    done: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divided_replay, "GROUP_RECORDS", 7)
        patch.setattr(divided_tables, "core_count", lambda: 2)
        extent = Extent(log, log.end_offset)
        assert write_divided_tables(extent, replicas, str(output), NAMES, done.append)
    assert sorted(done) == sorted(NAMES) == sorted(each.name for each in output.iterdir())
    tables = {name: open_parquet(str(output / name)).to_table() for name in NAMES}
    assert all(found.schema == schema_of(name) for name, found in tables.items() if name != "records")
    offsets = tables["audit"]["offset"].to_pylist()
    assert offsets == sorted(offsets)
    return {name: plain(name, found.to_pylist()) for name, found in tables.items()}


@pytest.mark.parametrize("seed", range(36, 38))
def test_every_table_of_a_divided_history_is_that_of_a_naive_replay(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path / "node", seed=seed)
    compare(divided(story.directory.path, tmp_path / "out"), truth_of(story.directory.path))


def test_every_table_of_a_divided_log_behind_a_checkpoint_is_that_of_a_naive_replay(tmp_path: Path) -> None:
    path, truth = behind_a_checkpoint(tmp_path, seed=40)
    compare(divided(path, tmp_path / "out"), truth)


def test_a_log_with_many_other_records_is_not_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divided_replay, "MAX_OTHERS", 20)
    log = committed_log(find_replicas([str(Story(tmp_path / "node", seed=41).directory.path)]))
    assert divided_replay.divide(Extent(log, log.end_offset)) is None


def test_what_ends_a_process_ends_the_run() -> None:
    def work(number: int) -> Iterator[int]:
        yield number
        if number == 1:
            raise InputError("a fault")
        time.sleep(60)

    def killed(number: int) -> Iterator[int]:
        yield os.getpid()
        time.sleep(60)

    with pytest.raises(InputError, match="a fault"):
        list(in_processes(work, 2))
    with pytest.raises(InputError, match="was killed"):
        for pid in in_processes(killed, 2):
            os.kill(pid, signal.SIGKILL)
    assert list(in_processes(lambda number: iter([number]), 1)) == [0]


def test_small_tables_need_no_java(tmp_path: Path) -> None:
    story, output = Story(tmp_path / "node", seed=35), tmp_path / "out"
    arguments = ["--input", str(story.directory.path), "--output", str(output)]
    (output / "topics").mkdir(parents=True)
    (output / "topics" / "part-of-an-earlier-run.parquet").write_bytes(b"")
    subprocess.run(
        [sys.executable, "-m", "kraftd.spark.main", "tables", *arguments],
        check=True,
        capture_output=True,
        env=os.environ | {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)},
    )
    assert {path.name for path in output.iterdir()} == set(NAMES)
    assert all(len(list(path.glob("*.parquet"))) == 1 for path in output.iterdir())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.5, "-0.5"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (2.5e-4, "2.5E-4"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_quota_is_written_as_spark_writes_it(value: float, text: str) -> None:
    assert double_text(value) == text


def test_what_is_damaged_is_left_out_of_a_divided_log_as_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divided_replay, "GROUP_RECORDS", 7)
    monkeypatch.setattr(divided_tables, "core_count", lambda: 2)
    directory = Story(tmp_path / "node", seed=36).directory
    data = bytearray(directory.log.read_bytes())
    data[len(data) // 2] ^= 1
    directory.log.write_bytes(data)
    replicas = find_replicas([str(directory.path)])
    log = committed_log(replicas, permissive=True)
    extent = Extent(log, log.end_offset, permissive=True)
    names = (*NAMES, DAMAGED)
    one, other = tmp_path / "one", tmp_path / "other"
    write_small_tables(extent, replicas, str(one), names, str)
    assert write_divided_tables(extent, replicas, str(other), names, str)
    for name in names:
        ours, theirs = (open_parquet(str(home / name)).to_table() for home in (one, other))
        assert ours.schema == theirs.schema
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
    (damage,) = open_parquet(str(other / DAMAGED)).to_table().to_pylist()
    assert damage["path"] == str(directory.log) and "checksum" in damage["reason"]


@pytest.mark.parametrize(("mib", "needs_none"), [(120, True), (130, False)])
def test_a_directory_like_that_of_200000_partitions_needs_no_spark(
    mib: int, tmp_path: Path, *, needs_none: bool
) -> None:
    """Apache Kafka's has 46 MB of log, and two checkpoints of 49 MB together."""
    directory = written(tmp_path / "node")
    (directory.log.parent / f"{7:020d}-{1:010d}.checkpoint").touch()
    with next(directory.log.parent.glob("*.checkpoint")).open("wb") as file:
        file.truncate(mib << 20)
    log = committed_log(find_replicas([str(directory.path)]), permissive=True)
    assert need_no_spark(log) is needs_none
