"""Inputs on Hadoop's file systems: here a `viewfs` that Spark's settings mount, which needs no server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from kraftd.spark import register, tables, update_lake
from kraftd.spark.errors import InputError
from kraftd.spark.inputs import hadoop, storage
from kraftd.spark.lake.formats import open_lake
from kraftd.spark.main import main
from tests.spark.test_planning import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_numbers = count()
MOUNT = "fs.viewfs.mounttable.logs.link./data"


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The URI of a node's directory, tmp_path/node: each its own, because Hadoop remembers a mount."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"logs{next(_numbers)}"
    mount = MOUNT.replace("logs", name)
    settings.set(mount, f"file://{tmp_path}")
    yield f"viewfs://{name}/data/node"
    settings.unset(mount)
    for known in (hadoop._copied, storage._copies, storage._older):
        known.clear()


def test_spark_reads_a_log_that_its_settings_mount(spark: SparkSession, mounted: str, tmp_path: Path) -> None:
    """Records, tables and a lake; the copy follows the log, and messages name the URI."""
    directory = written(tmp_path / "node", batches=4)
    snapshot = directory.partition / "00000000000000000003-0000000001.checkpoint"
    register(spark)
    reader = spark.read.format("kraft")
    assert reader.load(mounted).count() == directory.end_offset
    assert reader.load(f"{mounted}/__cluster_metadata-0/{directory.log.name}").count() == directory.end_offset
    with tables(spark, mounted) as found:
        topics = {row["name"] for row in found["topics"].collect()}
        assert found.as_of == directory.end_offset - 1 and mounted in repr(found)
    assert topics == {f"t{number}-{at}" for number in range(4) for at in range(3)}
    assert reader.option("table", "topics").load(mounted).schema.names[0] == "name"
    assert update_lake(spark, mounted, str(tmp_path / "lake"), names=["topics"]) == directory.end_offset - 1
    assert open_lake("delta", str(tmp_path / "lake")).rows("topics").num_rows == len(topics)
    with pytest.raises(InputError, match="never go back"):
        update_lake(spark, mounted, str(tmp_path / "lake"), names=["topics"], as_of=3)
    with pytest.raises(InputError, match="there is no such table"):
        update_lake(spark, mounted, str(tmp_path / "lake"), names=["topic"])

    whole = directory.log.read_bytes()
    directory.log.write_bytes(whole[:-5])
    snapshot.write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match=f"{mounted}/.*a torn tail"), tables(spark, mounted) as found:
        assert found.as_of < directory.end_offset - 1
    snapshot.unlink()
    directory.log.write_bytes(whole)
    assert spark.read.format("kraft").load(mounted).count() == directory.end_offset
    assert not list(tmp_path.glob("**/.*.crc"))


def test_a_read_keeps_what_the_source_deletes_afterwards(
    spark: SparkSession, mounted: str, tmp_path: Path
) -> None:
    directory = written(tmp_path / "node", batches=4)
    directory.snapshot(4, [])
    (snapshot,) = directory.partition.glob("*.checkpoint")
    with tables(spark, mounted) as first:
        lost = snapshot.read_bytes()
        snapshot.unlink()
        with tables(spark, mounted) as second:
            assert second["snapshots"].count() == first["snapshots"].count() - 1
        directory.log.unlink()
        snapshot.write_bytes(lost)
        with pytest.raises(InputError, match="a checkpoint without its log"):
            tables(spark, mounted)
        assert first["topics"].count() == 12


def test_what_no_file_system_holds_is_refused(spark: SparkSession, mounted: str, tmp_path: Path) -> None:
    written(tmp_path / "node", batches=1)
    for source, why in (
        (f"{mounted}s", "no such file"),
        ("viewfs://elsewhere/data", "elsewhere"),
        ("nowhere://host/data", "nowhere://host/data: "),
        (f"file://{tmp_path}/nodes", f"^{tmp_path}/nodes: no such file"),
    ):
        with pytest.raises(InputError, match=why):
            tables(spark, source)
    with tables(spark, f"file://{tmp_path}/node") as found:
        assert found["topics"].count() == 3
    wrong = CliRunner().invoke(main, ["tables", "--input", "a", "--output", "b", "--conf", "fs.defaultFS=x"])
    assert wrong.exit_code == 2 and "spark.KEY=VALUE is expected" in wrong.stderr


@pytest.mark.parametrize("is_ignored", [False, True])
def test_sigint_ends_an_import_with_one_line_unless_ignored(*, is_ignored: bool) -> None:
    """A shell's job in the background ignores SIGINT."""
    command = [sys.executable, "-X", "importtime", "-m", "kraftd.spark.main", "--help"]
    handler = signal.SIG_IGN if is_ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)
    try:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.stderr is not None
    try:
        next(line for line in run.stderr if "pyarrow" in line)
        run.send_signal(signal.SIGINT)
        lines = [line for line in run.communicate(timeout=300)[1].splitlines() if "import time:" not in line]
    finally:
        run.kill()
    assert run.returncode == (0 if is_ignored else 130), lines
    assert lines == ([] if is_ignored else ["kraftd-spark: interrupted"])


def test_sigint_ends_a_run_with_one_line_and_whole_tables(tmp_path: Path) -> None:
    """`--conf` mounts the input. Tables that were written stay, and others do not appear."""
    directory, output = written(tmp_path / "node"), tmp_path / "out"
    words = ["tables", "--input", "viewfs://logs/data/node", "--output", str(output), "--master", "local[1]"]
    command = [sys.executable, "-m", "kraftd.spark.main", *words]
    command += ["--conf", f"spark.hadoop.{MOUNT}=file://{tmp_path}", "--scratch", str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    lines = []
    try:
        for line in run.stderr:
            lines.append(line)
            if "decoding" in line:
                run.send_signal(signal.SIGINT)
                break
        stdout, stderr = run.communicate(timeout=300)
    finally:
        run.kill()
    steps = [line for line in [*lines, *stderr.splitlines()] if "[" in line and "/" in line]
    assert run.returncode == 130, (lines, stderr)
    rest = [line for line in stderr.splitlines() if line not in steps]
    assert rest == ["kraftd-spark: interrupted"] and not stdout, (lines, stderr)
    names = {each.name for each in output.iterdir() if not each.name.endswith(".unfinished")}
    assert "records" in names and len(names) < 27
    assert ds.dataset(str(output / "records")).count_rows() == directory.end_offset
    for name in names:
        assert (output / name / "_SUCCESS").exists(), name
    assert not list(tmp_path.glob("kraftd-spark-input-*")), "copies are deleted"


def test_a_jvm_that_is_killed_ends_a_run_with_one_line(tmp_path: Path) -> None:
    directory, output = written(tmp_path / "node"), tmp_path / "out"
    words = ["tables", "--input", str(directory.path), "--output", str(output), "--master", "local[1]"]
    command = [sys.executable, "-m", "kraftd.spark.main", *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    lines = []
    try:
        for line in run.stderr:
            lines.append(line)
            if "decoding" in line:
                (java,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
                os.kill(int(java), signal.SIGKILL)
                break
        stdout, stderr = run.communicate(timeout=300)
    finally:
        run.kill()
    rest = [line for line in stderr.splitlines() if "kraftd-spark: [" not in line]
    assert rest == ["kraftd-spark: Spark's JVM was killed by signal 9: is there memory?"], (lines, stderr)
    assert run.returncode == 1 and not stdout
    assert not (output / ".staging").exists()
