"""`kraftd-spark tables` in the suite's session: bytes kept of damaged input, refusals of `--as-of`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result

from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.spark.commands import tables, validate
from kraftd.spark.main import main
from kraftd.wire.batch import build_batch, iter_batches
from tests.spark.logs import MS_PER_RECORD, START_MS, LogDirectory
from tests.spark.test_planning import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
Run = Callable[..., Result]
WITH_SPARK = ("--master", "local[2]")
"""Spark makes the tables even of a small log."""


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of `kraftd-spark` that leaves the session open."""
    for command in (tables, validate):
        monkeypatch.setattr(command, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def column(output: Path, table: str, name: str) -> list:
    return ds.dataset(str(output / table)).to_table(columns=[name])[name].to_pylist()


def snapshot_of(directory: LogDirectory, end_offset: int) -> Path:
    """Write a checkpoint of the topics that `written` created below an offset."""
    image = Image()
    for offset in range(1, end_offset):
        number, at = divmod(offset - 1, 3)
        image.apply(TopicRecord(name=f"t{number}-{at}", topic_id=bytes([number, at]) * 8), offset, 1)
    return directory.snapshot(end_offset, list(image.records()))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("route", [(), WITH_SPARK], ids=["replay", "spark"])
def test_permissive_keeps_every_byte_that_it_cannot_read(
    run: Run, tmp_path: Path, route: tuple[str, ...]
) -> None:
    directory, output = written(tmp_path / "a"), tmp_path / "out"
    broken = list(iter_batches(directory.log.read_bytes()))[20]
    flip(directory.log, broken.position + 70)
    first = directory.log
    directory.append([NoOpRecord()])
    directory.roll()
    with directory.log.open("ab") as file:
        file.write(b"torn")
    failed = run("tables", "--input", directory.path, "--output", output)
    place = f"{first}: byte {broken.position}, offset {broken.header.base_offset}: checksum"
    assert failed.exit_code == 1 and place in failed.stderr and "Traceback" not in failed.output
    assert not (output / ".staging").exists()
    done = run(
        "tables",
        *("--input", directory.path, "--output", output, "--mode", "permissive", "--tables", "records"),
        *route,
    )
    assert done.exit_code == 2, done.output
    assert f"damaged: 1 piece, listed in {output / 'damaged'}; the first is {first}: byte " in done.stderr
    checked = run("validate", "--input", directory.path, "--mode", "permissive")
    assert checked.exit_code == 2 and f"        {first}: byte {broken.position}: checksum" in checked.stdout
    checked = run("validate", "--input", directory.path)
    assert "0 of 1 checks hold; not tried, because the log cannot be read: 6; notes: 1" in checked.stdout
    lost = range(broken.header.base_offset, broken.header.next_offset)
    assert sorted(column(output, "records", "offset")) == [at for at in range(122) if at not in lost]
    damaged = dict(
        zip(column(output, "damaged", "path"), column(output, "damaged", "size_bytes"), strict=True)
    )
    assert damaged == {str(first): len(broken.view), str(directory.log): len(b"torn")}
    assert set(column(output, "damaged", "data")) == {None}  # it may hold secrets


@pytest.mark.parametrize("command", ["tables", "validate"])
def test_a_record_of_a_future_type_is_reported_with_path_and_offset(
    run: Run, tmp_path: Path, command: str
) -> None:
    directory = written(tmp_path / "a", batches=2)
    size = directory.log.stat().st_size
    offset = directory.end_offset
    directory.write(build_batch([b"\x01\x63\x00whatever"], offset, 1, START_MS))
    output = ("--output", tmp_path / "out") if command == "tables" else ()
    done = run(command, "--input", directory.path, *output)
    assert done.exit_code == (1 if command == "tables" else 2)
    message = (
        f"{directory.log}: byte {size}, offset {offset}: record of offset {offset}: its type 99 is not known"
    )
    assert message in done.output


def test_validate_reports_a_torn_tail_as_a_note_and_succeeds(run: Run, tmp_path: Path) -> None:
    directory = written(tmp_path / "a", batches=2)
    size = directory.log.stat().st_size
    with directory.log.open("ab") as file:
        file.write(b"torn")
    done = run("validate", "--input", directory.path)
    assert done.exit_code == 0, done.output
    note = f"note    {directory.log}: byte {size}, offset {directory.end_offset}: a torn tail of 4 bytes"
    assert note in done.stdout
    assert done.stdout.splitlines()[-1].endswith("checks hold; notes: 1")


@pytest.mark.parametrize("route", [(), WITH_SPARK], ids=["replay", "spark"])
def test_permissive_skips_a_damaged_checkpoint_and_lists_its_place(
    run: Run, tmp_path: Path, route: tuple[str, ...]
) -> None:
    directory, output = written(tmp_path / "a", batches=4), tmp_path / "out"
    checkpoint = snapshot_of(directory, 7)
    batch = list(iter_batches(checkpoint.read_bytes()))[1]
    flip(checkpoint, batch.position + 70)
    command = ("tables", "--input", directory.path, "--output", output, "--tables", "topics", *route)
    whole = run(*command)
    assert whole.exit_code == 0 and len(column(output, "topics", "name")) == 12, "the log has it all"
    done = run(*command, "--mode", "permissive")
    assert done.exit_code == 2, done.output
    assert len(column(output, "topics", "name")) == 12
    place = (column(output, "damaged", "position"), column(output, "damaged", "size_bytes"))
    assert place == ([batch.position], [len(batch.view)])


def test_a_checkpoint_without_its_log_is_refused_and_read_if_permissive(run: Run, tmp_path: Path) -> None:
    directory, output = written(tmp_path / "a", batches=4), tmp_path / "out"
    checkpoint = snapshot_of(directory, 7)
    directory.log.unlink()
    command = ("tables", "--input", directory.path, "--output", output, "--tables", "topics")
    failed = run(*command)
    assert failed.exit_code == 1
    assert f"{checkpoint}: offset 7: a checkpoint without its log" in failed.stderr
    done = run(*command, "--mode", "permissive")
    assert done.exit_code == 0, done.output
    assert sorted(column(output, "topics", "name")) == ["t0-0", "t0-1", "t0-2", "t1-0", "t1-1", "t1-2"]


def test_a_time_before_the_first_checkpoint_is_refused(run: Run, tmp_path: Path) -> None:
    """The log begins at offset 4, within a segment; the oldest remaining checkpoint is that of offset 7."""
    whole, directory, output = written(tmp_path / "a", batches=4), tmp_path / "b", tmp_path / "out"
    log = LogDirectory(directory, start=4)
    start = next(each for each in iter_batches(whole.log.read_bytes()) if each.header.base_offset == 4)
    log.write(whole.log.read_bytes()[start.position :])
    log.epoch = 1
    snapshot_of(log, 7)

    def tables_as_of(as_of: object) -> Result:
        return run("tables", "--input", directory, "--output", output, "--tables", "topics", "--as-of", as_of)

    early = datetime.fromtimestamp((START_MS + 4 * MS_PER_RECORD) / 1000, UTC).isoformat()
    for as_of in (4, 5, early):
        refused = tables_as_of(as_of)
        assert refused.exit_code == 1, refused.output
        assert f"--as-of {as_of} lies before offset 6" in refused.stderr
    assert tables_as_of(6).exit_code == 0
    assert len(column(output, "topics", "name")) == 6
    assert tables_as_of(12).exit_code == 0
    assert len(column(output, "topics", "name")) == 12
