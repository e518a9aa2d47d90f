"""Delta and Iceberg tables of a growing log: equal to the datasets of the same offset, whatever happens."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from kraftd.messages.topic_record import TopicRecord
from kraftd.spark import parquet
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.lake import delta, iceberg, kept_log, update
from kraftd.spark.lake.formats import open_lake
from kraftd.spark.lake.kept_log import KeptLog
from kraftd.spark.lake.tables import COVERS, Lake
from kraftd.spark.main import main
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import NAMES
from tests.spark.images import in_order
from tests.spark.logs import LogDirectory
from tests.spark.test_tables import Story
from tests.spark.test_truth import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FORMATS = ("delta", "iceberg")
STEPS = (40, 160, 290)
"""Offsets at which a run ends; the story has two elections and a new segment in between."""
SOME = ("records", "topics", "partition_history", "config_history", "audit")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("lake") / "node", seed=5)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["tables", *(str(word) for word in words)])


def bring_up(story: Path, output: Path, kind: str, *words: object) -> None:
    done = run("--input", story, "--output", output, "--format", kind, *words)
    assert done.exit_code == 0, done.output


def expected(path: Path, end_offset: int, names: Sequence[str] = NAMES) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables as of an offset, without a lake."""
    replicas = find_replicas([str(path)])
    replay = Replay(Extent(committed_log(replicas), end_offset))
    return {name: in_order(replayed_table(name, replay, replicas).to_pylist()) for name in names}


def found(lake: Lake, names: Sequence[str] = NAMES) -> dict[str, list[dict[str, Any]]]:
    return {name: in_order(lake.rows(name).to_pylist()) for name in names}


def shown(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The rows, as PyIceberg stores them: a null array of structs is an empty one."""
    if kind == "delta":
        return rows
    return in_order([{name: None if value == [] else value for name, value in row.items()} for row in rows])


def check(lake: Lake, path: Path, end_offset: int, names: Sequence[str] = NAMES) -> None:
    wanted = expected(path, end_offset, names)
    for name, rows in found(lake, names).items():
        kind = "iceberg" if isinstance(lake, iceberg.IcebergLake) else "delta"
        assert shown(rows, kind) == shown(wanted[name], kind), name


def test_every_table_but_records_has_a_covering_column() -> None:
    assert set(COVERS) == set(NAMES) - {"records"}


@pytest.mark.parametrize("kind", FORMATS)
def test_tables_follow_a_growing_log(
    story: Story, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here three files are many, and so are three parts of the decoded log."""
    for module, name in ((delta, "MANY_FILES"), (iceberg, "MANY_FILES"), (kept_log, "_MANY_PARTS")):
        monkeypatch.setattr(module, name, 2)
    path, names = story.directory.path, SOME if kind == "iceberg" else NAMES
    words = ("--tables", ",".join(names))
    for offset in STEPS:
        bring_up(path, tmp_path, kind, "--as-of", offset, *words)
    lake = open_lake(kind, str(tmp_path))
    check(lake, path, STEPS[-1] + 1, names)
    assert lake.end_offset("records") == STEPS[-1] + 1
    bring_up(path, tmp_path, kind, *words)
    check(lake, path, story.directory.end_offset, names)
    files = {name: lake.files(name) for name in names}
    assert max(len(each) for each in files.values()) <= 3
    bring_up(path, tmp_path, kind, *words)
    assert {name: lake.files(name) for name in names} == files, "a run without news commits nothing"
    refused = run("--input", path, "--output", tmp_path, "--format", kind, "--as-of", 40, *words)
    assert refused.exit_code == 1 and "never go back to 40" in refused.stderr


def test_delta_lake_for_spark_reads_the_tables(spark: SparkSession, story: Story, tmp_path: Path) -> None:
    """Tables after commits that added and replaced, and `records` as of its first commit."""
    path, names = story.directory.path, ("records", "topics", "audit")
    for offset in STEPS[::2]:
        bring_up(path, tmp_path, "delta", "--as-of", offset, "--tables", ",".join(names))
    settings = {  # in the place of the extension, which would be every test's
        "spark.databricks.delta.requiredSparkConfsCheck.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        reader = spark.read.format("delta")
        for name, wanted in expected(path, STEPS[-1] + 1, names).items():
            rows = [row.asDict(recursive=True) for row in reader.load(str(tmp_path / name)).collect()]
            assert in_order(plain(name, rows)) == in_order(plain(name, wanted)), name
        first = reader.option("versionAsOf", 0).load(str(tmp_path / "records"))
        assert first.count() == STEPS[0] + 1
    finally:
        for key in settings:
            spark.conf.unset(key)


class Killed(BaseException):
    """The end of a process, at a place."""


@pytest.mark.parametrize("kind", FORMATS)
def test_a_run_after_a_kill_doubles_and_loses_nothing(story: Story, tmp_path: Path, kind: str) -> None:
    """Killed before the decoded log has its name, before `records`, and between commits."""
    path, words = story.directory.path, ("--tables", ",".join(SOME))
    bring_up(path, tmp_path, kind, "--as-of", STEPS[0], *words)
    places = [(parquet, "_finish", 0), (update, "_append_records", 0), (update, "_commit", 1)]
    for end, (module, name, count) in enumerate(places, STEPS[1]):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, module, name, count)
            with pytest.raises(Killed):
                bring_up(path, tmp_path, kind, "--as-of", end, *words)
    bring_up(path, tmp_path, kind, "--as-of", STEPS[2], *words)
    check(open_lake(kind, str(tmp_path)), path, STEPS[2] + 1, SOME)


def test_a_killed_process_leaves_tables_that_the_next_run_completes(story: Story, tmp_path: Path) -> None:
    """SIGKILL between commits, while tables are made anew and while they are brought up."""
    path, words = story.directory.path, ("--tables", ",".join(SOME))
    for end in STEPS[:2]:
        command = [sys.executable, "-m", "kraftd.spark.main", "tables", "--format", "delta", *words]
        command += ["--input", str(path), "--output", str(tmp_path), "--as-of", str(end)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert any("[2/5] topics" in line for line in process.stderr)
            process.kill()
    bring_up(path, tmp_path, "delta", "--as-of", STEPS[2], *words)
    check(open_lake("delta", str(tmp_path)), path, STEPS[2] + 1, SOME)


def kill_at(patch: pytest.MonkeyPatch, module: Any, name: str, count: int) -> None:
    """Kill the run at the start of the call of a function after count calls of it."""
    whole, left = getattr(module, name), [count]

    def killed(*words: Any, **more: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return whole(*words, **more)

    patch.setattr(module, name, killed)


@pytest.mark.parametrize("kind", FORMATS)
def test_tables_outlive_the_beginning_of_the_log(story: Story, tmp_path: Path, kind: str) -> None:
    """The input is a copy without its first segment, which a checkpoint replaces."""
    path, cut, output = story.directory.path, tmp_path / "node", tmp_path / "lake"
    shutil.copytree(path, cut)
    first, second = sorted(each for each in (cut / "__cluster_metadata-0").glob("*.log"))[:2]
    start = int(second.stem)
    bring_up(path, output, kind, "--as-of", start + 5, "--tables", ",".join(SOME))
    first.unlink()
    directory = LogDirectory.__new__(LogDirectory)
    directory.__dict__.update(story.directory.__dict__, path=cut, partition=first.parent, epoch=1)
    quiet = story.quiet_offset(start - 1)
    directory.snapshot(quiet + 1, list(story.image(quiet).records()))
    bring_up(cut, output, kind, "--tables", ",".join(SOME))
    wanted = expected(path, story.directory.end_offset)
    lake = open_lake(kind, str(output))
    for name in SOME:
        assert shown(in_order(lake.rows(name).to_pylist()), kind) == shown(wanted[name], kind), name
    bring_up(cut, tmp_path / "late", kind, "--tables", ",".join(SOME))
    late = found(open_lake(kind, str(tmp_path / "late")), SOME)
    again = expected(cut, story.directory.end_offset, SOME)
    for name in SOME:
        assert shown(late[name], kind) == shown(again[name], kind), f"{name} of a log that was cut"


def test_the_decoded_log_has_few_parts_and_is_merged_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of records in the same pieces, sixteen times as many take hardly more memory."""
    monkeypatch.setattr(kept_log, "_MANY_PARTS", 4)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 50)
    pool_of_all, most = pa.default_memory_pool(), []
    for records in (8, 128):
        directory = LogDirectory(tmp_path / f"node-{records}")
        directory.elect(1, 1)
        kept = KeptLog(str(tmp_path / f"lake-{records}"), "cluster")
        pa.set_memory_pool(pool := pa.proxy_memory_pool(pool_of_all))
        try:
            for number in range(16):
                directory.append(
                    [TopicRecord(name=f"{number}-{at}", topic_id=bytes(16)) for at in range(records)]
                )
                log = committed_log(find_replicas([str(directory.path)]))
                kept.append(log, log.end_offset)
                assert len(kept._parts) <= 6
        finally:
            pa.set_memory_pool(pool_of_all)
        most.append(pool.max_memory())
        wanted = Replay(Extent(log, log.end_offset)).records()
        assert kept.rows().to_pylist() == wanted.to_pylist()
    assert most[1] < 5 * most[0], most


def test_what_is_no_table_of_the_format_is_not_touched(story: Story, tmp_path: Path) -> None:
    path = story.directory.path
    words = ("--input", path, "--output", tmp_path, "--tables", "topics")
    assert run(*words).exit_code == 0
    refused = run(*words, "--format", "delta")
    assert refused.exit_code == 1 and f"{tmp_path}/topics is no delta table" in refused.stderr
    shutil.rmtree(tmp_path / "topics")
    assert run(*words, "--format", "delta").exit_code == 0
    for kind in ("parquet", "iceberg"):
        refused = run(*words, "--format", kind)
        assert refused.exit_code == 1 and f"{tmp_path}/topics is " in refused.stderr
    other = LogDirectory(tmp_path / "other")
    other.elect(1, 1)
    properties = other.path / "meta.properties"
    properties.write_text(properties.read_text().replace("J8q", "K8q"))
    refused = run("--input", other.path, *words[2:], "--format", "delta")
    assert refused.exit_code == 1 and "holds tables of cluster J8q" in refused.stderr
    wrong = run(*words, "--format", "delta", "--mode", "permissive")
    assert wrong.exit_code == 2 and "sound logs alone" in wrong.stderr
