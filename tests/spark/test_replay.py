"""The tables that the driver makes of small logs, without Spark.

Here they are compared with a naive replay; `rows_of` compares them with Spark's in all other tests of tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.replay.audit import double_text
from kraftd.spark.replay.catalog import table
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import NAMES
from tests.spark.images import Rows
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
