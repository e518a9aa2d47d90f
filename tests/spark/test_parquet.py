"""Parquet files of the tasks: the rows of the data source, no passwords, and no unreported file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from kraftd.messages.config_record import ConfigRecord
from kraftd.spark import parquet
from kraftd.spark.decoding.fields import record_schema, source_schema
from kraftd.spark.failures import what_failed
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.parquet import Job, commit, write_part
from kraftd.spark.source.reading import Wanted
from kraftd.spark.source.tasks import plan_tasks
from kraftd.spark.timeline import Timeline
from tests.spark.logs import LogDirectory
from tests.spark.test_planning import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def written_part(directory: LogDirectory, target: Path, schema: pa.Schema, *, permissive: bool) -> pa.Table:
    """The rows that one task writes of a whole log."""
    log = committed_log(find_replicas([str(directory.path)]), permissive=permissive)
    (task,) = plan_tasks(log.log.splits, Wanted(), 0, log.end_offset)
    part = write_part(0, task, Job(str(target), schema, permissive))
    found = pq.read_table(target / part.name)
    assert len(found) == part.rows
    return found


def test_passwords_of_brokers_are_hidden_and_other_values_are_not(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "a")
    password, plain = "listener.name.x.ssl.key.password", "log.cleaner.threads"
    of_listener = "listener.name.x.ssl.keystore.location"
    for kind in (2, 4):
        for name in (password, plain, of_listener):
            directory.append([ConfigRecord(resource_type=kind, resource_name="1", name=name, value="v")])
    directory.append([ConfigRecord(resource_type=4, resource_name="1", name=password, value=None)])
    found = written_part(directory, tmp_path / "out", record_schema(), permissive=False)
    hidden = "[redacted]"  # a topic has none of these keys
    assert found["value"].to_pylist() == [hidden, hidden, hidden, hidden, "v", "v", None]


def test_damage_is_written_only_where_it_has_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 50)
    directory = written(tmp_path / "a")
    content = bytearray(directory.log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    directory.log.write_bytes(content)
    records = written_part(directory, tmp_path / "records", record_schema(), permissive=True)
    everything = written_part(directory, tmp_path / "all", source_schema(), permissive=True)
    assert records.schema.equals(record_schema())
    assert len(records) == 118 and records["offset"].null_count == 0
    damage = [row for row in everything["damage"].to_pylist() if row is not None]
    assert [row["path"] for row in damage] == [str(directory.log)] * len(damage)
    assert len(everything) == len(records) + len(damage) > len(records)


def test_a_dataset_has_the_rows_of_the_source_and_replaces_the_last_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory, target = written(tmp_path / "a"), tmp_path / "out" / "records"
    log = committed_log(find_replicas([str(directory.path)]), split_bytes=1000)
    assert len(log.log.splits) > 3
    for _ in range(2):
        assert Timeline(spark, log, 100).write_log(str(target)) == 100
    assert sorted(path.name for path in target.parent.iterdir()) == ["records"]
    assert (target / "_SUCCESS").exists()
    rows = spark.read.format("kraft").load(str(directory.path)).where("offset < 100").drop("damage")
    assert spark.read.parquet(str(target)).exceptAll(rows).isEmpty()
    assert rows.count() == 100
    assert Timeline(spark, log, 0).write_log(str(target)) == 0
    assert spark.read.parquet(str(target)).columns == record_schema().names


@pytest.fixture(autouse=True)
def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """These logs are small, but Spark's workers decode them as they do large ones."""
    monkeypatch.setattr(parquet, "SMALL_BYTES", 0)


def test_a_failure_leaves_the_existing_dataset(spark: SparkSession, tmp_path: Path) -> None:
    directory, target = written(tmp_path / "a"), tmp_path / "records"
    log = committed_log(find_replicas([str(directory.path)]), split_bytes=1000)
    Timeline(spark, log, 50).write_log(str(target))
    content = bytearray(directory.log.read_bytes())
    content[-1] ^= 0xFF
    directory.log.write_bytes(content)
    with pytest.raises(PySparkException) as failed:
        Timeline(spark, log, log.end_offset).write_log(str(target))
    assert what_failed(failed.value).startswith(f"{directory.log}: byte ")
    assert ds.dataset(str(target)).count_rows() == 50


def test_files_of_superseded_task_attempts_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    directory, unfinished = written(tmp_path / "a"), tmp_path / "records.unfinished"
    written_part(directory, unfinished, record_schema(), permissive=False)
    (reported,) = unfinished.iterdir()
    shutil.copy(reported, unfinished / "part-000000-of-another-attempt.parquet")
    commit(spark, str(unfinished), str(tmp_path / "records"), [reported.name])
    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == ["_SUCCESS", reported.name]
