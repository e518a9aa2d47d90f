"""Input and options that `kraftd-spark` refuses before it starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftd.spark.commands import ingest, report, tables, validate
from kraftd.spark.inputs.input_log import refuse_output_in_input
from kraftd.spark.main import main
from kraftd.wire.batch import build_batch
from tests.spark.logs import LogDirectory
from tests.spark.test_planning import written


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (ingest, report, tables, validate):
        monkeypatch.setattr(command, "start_session", lambda *_, **__: pytest.fail("Spark was started"))


def refused(*words: object, code: int = 1) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stderr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "node", batches=2).path


@pytest.mark.parametrize("command", ["tables", "ingest", "report"])
def test_an_output_within_an_input_is_refused(log: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "link").symlink_to(log)
    for given in (log, log / "__cluster_metadata-0", next(log.glob("*/*.log"))):
        outputs = [log / "new", tmp_path / "link" / "new"]
        for output in outputs if command == "report" else [log, *outputs]:  # a page is a file
            found = refused(command, "--input", given, "--output", output)
            assert f"--output {output} lies in the input {given}" in found
    assert sorted(each.name for each in log.iterdir()) == ["__cluster_metadata-0", "meta.properties"]


def test_an_output_beside_a_copied_segment_is_taken(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "00000000000000000000.log"
    copy.write_bytes(next(log.glob("*/*.log")).read_bytes())
    refuse_output_in_input([str(copy)], str(tmp_path / "out"))
    assert "lies in the input" in refused("report", "--input", copy, "--output", copy)


def test_an_input_that_the_tables_would_replace_is_refused(log: Path) -> None:
    inner = log.rename(log.parent / "records")
    found = refused("tables", "--input", inner, "--output", inner.parent)
    assert f"would replace {inner}, which holds {inner}" in found


def test_a_segment_of_an_ordinary_topic_is_named_as_such(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "node")
    directory.write(build_batch([b"an order"], 0, 0, 1))
    found = refused("tables", "--input", directory.log, "--output", tmp_path / "out")
    assert f"{directory.log}: offset 0: a record of an ordinary topic, not of the metadata log" in found


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "node")
    for command in ("tables", "validate"):
        output = ("--output", tmp_path / "out") if command == "tables" else ()
        found = refused(command, "--input", directory.path, *output)
        assert f"{directory.path}: the log holds no committed record" in found


@pytest.mark.parametrize("command", ["tables", "report"])
def test_a_point_outside_the_log_is_refused(log: Path, tmp_path: Path, command: str) -> None:
    words = (command, "--input", log, "--output", tmp_path / "out", "--as-of")
    assert "'yesterday' is neither an offset (4711) nor a time" in refused(*words, "yesterday", code=2)
    assert "is in the future" in refused(*words, "2999-01-01", code=2)
    assert "--as-of 7 is beyond the end: the log is committed to offset 6" in refused(*words, "7")


def test_ingest_reads_files_or_a_server(log: Path, tmp_path: Path) -> None:
    words = ("ingest", "--input", log, "--bootstrap-server", "127.0.0.1:1", "--output", tmp_path / "out")
    assert "--input and --bootstrap-server exclude each other" in refused(*words, code=2)
    assert "give --input or --bootstrap-server" in refused("ingest", "--output", tmp_path / "out", code=2)
