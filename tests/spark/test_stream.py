"""The stream: exact offsets, waits at torn tails, limits under availableNow, restarts after kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

from kraftd.messages.no_op_record import NoOpRecord
from kraftd.spark.commands import ingest as ingest_module
from kraftd.spark.commands.ingest import append_batch
from kraftd.spark.failures import quiet_if_interrupted
from tests.spark.logs import LogDirectory
from tests.spark.test_planning import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Stream:
    """A stream of a directory into Parquet, which can run to the end of the log several times."""

    def __init__(self, spark: SparkSession, directory: LogDirectory, home: Path) -> None:
        self.spark, self.directory, self.home = spark, directory, home
        self.batches: list[int] = []

    def run(self, max_rows: int = 50) -> None:
        """Read all present records, then stop."""
        reader = self.spark.readStream.format("kraft").schema("offset long, epoch int, type string")
        rows = reader.option("maxRowsPerTrigger", str(max_rows)).load(str(self.directory.path))
        query = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(self.home / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self.home / "out"))
        )
        query.awaitTermination()
        self.batches += [each.numInputRows for each in query.recentProgress if each.numInputRows]

    def offsets(self) -> list[int]:
        rows = self.spark.read.parquet(str(self.home / "out")).select("offset").collect()
        return sorted(row[0] for row in rows)


def test_a_stream_continues_where_it_stopped_and_waits_for_torn_tails(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = written(tmp_path / "a")
    stream = Stream(spark, directory, tmp_path)
    stream.run(max_rows=50)
    assert stream.offsets() == list(range(121))
    assert stream.batches == [50, 50, 21]
    size = directory.log.stat().st_size
    directory.append([NoOpRecord() for _ in range(10)])
    whole = directory.log.read_bytes()
    directory.log.write_bytes(whole[: size + 70])
    stream.run()
    assert stream.offsets() == list(range(121))
    directory.log.write_bytes(whole)
    directory.roll()
    directory.append([NoOpRecord()])
    stream.run()
    assert stream.offsets() == list(range(132))


def test_a_stream_fails_if_records_that_it_read_were_replaced(spark: SparkSession, tmp_path: Path) -> None:
    directory = written(tmp_path / "a", batches=3)
    kept_bytes = directory.log.stat().st_size
    directory.append([NoOpRecord()])
    stream = Stream(spark, directory, tmp_path)
    stream.run()
    with directory.log.open("r+b") as file:
        file.truncate(kept_bytes)
    directory.end_offset -= 1
    directory.elect(2, 2)
    directory.append([NoOpRecord()])
    with pytest.raises(StreamingQueryException, match="offset 10: epoch 2 is where epoch 1 was read"):
        stream.run()


def test_a_batch_that_is_written_twice_is_stored_once(spark: SparkSession, tmp_path: Path) -> None:
    directory = written(tmp_path / "a", batches=5)
    rows = spark.read.format("kraft").load(str(directory.path))
    target = str(tmp_path / "out" / "cluster_id=x")
    for first, last in ((0, 9), (10, 15), (10, 15), (0, 6), (7, 15)):
        append_batch(rows.where(f"offset BETWEEN {first} AND {last}"), target)
    found = ds.dataset(str(tmp_path / "out"), partitioning="hive").to_table(columns=["offset"])
    assert sorted(found["offset"].to_pylist()) == list(range(16))


class KilledAfter:
    """Stands in for a function of the module: the process dies after some calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
        self.left = calls
        for name in ("move", "delete"):
            monkeypatch.setattr(ingest_module, name, partial(self.call, getattr(ingest_module, name)))

    def call(self, function: Callable[..., None], *arguments: object) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        function(*arguments)


def test_small_batches_share_a_directory_wherever_a_writer_is_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.read.format("kraft").load(str(written(tmp_path / "a", batches=5).path))
    for calls in range(5):
        target = tmp_path / str(calls)
        append_batch(rows.where("offset < 9"), str(target))
        with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
            KilledAfter(patch, calls)
            append_batch(rows.where("offset BETWEEN 9 AND 12"), str(target))
        append_batch(rows.where("offset BETWEEN 9 AND 12"), str(target))
        assert [path.name for path in target.glob("[!.]*")] == [f"first_offset={0:020d}"]
        found = ds.dataset(str(target), partitioning="hive").to_table(columns=["offset"])
        assert sorted(found["offset"].to_pylist()) == list(range(13))


def ingest(directory: LogDirectory, out: Path) -> subprocess.Popen[bytes]:
    """Start the command as a separate process, with 30 records a batch."""
    arguments = ["--input", directory.path, "--output", out, "--max-rows", "30", "--master", "local[1]"]
    return subprocess.Popen(
        [sys.executable, "-m", "kraftd.spark.main", "ingest", *map(str, arguments)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.thorough
def test_ingest_loses_and_duplicates_nothing_when_its_driver_is_killed(tmp_path: Path) -> None:
    directory, out = written(tmp_path / "a"), tmp_path / "out"
    process = ingest(directory, out)
    deadline = time.monotonic() + 300
    while len(list(out.glob(".checkpoint/commits/[0-9]*"))) < 2 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    last = ingest(directory, out)
    assert last.wait(300) == 0
    found = ds.dataset(str(out / "records"), partitioning="hive").to_table(columns=["offset"])
    assert sorted(found["offset"].to_pylist()) == list(range(directory.end_offset))


def test_an_interrupt_ends_the_streams_of_a_session(spark: SparkSession, tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    rows = spark.readStream.format("kraft").schema("offset long").load(str(directory.path))
    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("noop").start()
    with suppress(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            quiet_if_interrupted(spark)
            spark.sparkContext.setLogLevel("WARN")
    assert not query.isActive


def test_an_interrupt_waits_for_streams_before_it_cancels_their_jobs() -> None:
    """Spark does not list a stream whose job was cancelled, though its thread has still to end."""
    active = [query := Mock()]
    context = Mock(cancelAllJobs=Mock(side_effect=active.clear))
    session = Mock(sparkContext=context, streams=Mock(active=active))
    with suppress(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            quiet_if_interrupted(session)
    query.stop.assert_called_once_with()
    context.cancelAllJobs.assert_called_once_with()
