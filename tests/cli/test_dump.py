"""``kraftd dump`` shows the contents of files and reports damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftd.cli.storage.dump import camel_cased
from kraftd.log.disk import RealDisk
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.metadata_dir.recovery import open_log
from tests.cli.run import run, write_config
from tests.cli.sample_history import BEGAN_MS, append, write_history

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory as formatting leaves it."""
    config = write_config(tmp_path, 9093)
    assert run("format", "-c", config, "-t", CLUSTER, "-s").code == 0
    return tmp_path / "data"


def test_a_directory_is_shown_as_json_lines(data: Path) -> None:
    done = run("dump", data)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    features = {row["data"]["name"]: row["data"]["feature_level"] for row in rows if row["kind"] == "record"}
    assert features["metadata.version"] == 30


def test_a_table_has_a_line_for_each_record(data: Path) -> None:
    lines = run("dump", data / "bootstrap.checkpoint", "--table").out.splitlines()
    assert lines[0].split() == ["OFFSET", "EPOCH", "TYPE", "VERSION", "DATA"]
    assert any("FeatureLevelRecord" in line and "metadata.version" in line for line in lines)


def test_verify_accepts_undamaged_files(data: Path) -> None:
    done = run("dump", data, "--verify")
    assert (done.code, done.out) == (0, "")
    assert "all sound" in done.err


def test_a_flipped_bit_is_reported_with_its_position(data: Path) -> None:
    path = data / "bootstrap.checkpoint"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    for more in ([], ["--table"], ["--verify"]):
        done = run("dump", path, *more)
        assert done.code == 3
        assert "damage" in done.out.lower()
        assert str(path) in done.out
        assert "Damaged places: 1," in done.err


def test_damage_is_reported_even_if_all_records_are_filtered_out(data: Path) -> None:
    path = data / "bootstrap.checkpoint"
    path.write_bytes(path.read_bytes()[:-3])
    done = run("dump", "--from-offset", "900000", "--to-offset", "900001", "--skip-noop", path)
    assert [json.loads(line)["kind"] for line in done.out.splitlines()] == ["damage"]
    assert done.code == 3


def test_a_missing_or_empty_path_is_reported(data: Path, tmp_path: Path) -> None:
    missing = run("dump", tmp_path / "nowhere")
    assert missing.code == 1
    assert "there is no such file" in missing.err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("dump", empty).code == 1


def rows(*words: object) -> list[dict[str, Any]]:
    done = run("dump", *words)
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture
def past(tmp_path: Path) -> Path:
    return write_history(tmp_path / "past")


def test_a_range_of_offsets_limits_the_output(past: Path) -> None:
    found = rows(past, "--from-offset", 3, "--to-offset", 5)
    assert [row["offset"] for row in found if row["kind"] != "batch"] == [3, 4, 5]
    assert [row["base_offset"] for row in found if row["kind"] == "batch"] == [2, 5]


def test_a_range_beyond_the_end_is_refused_with_what_the_files_have(past: Path) -> None:
    for option in ("--from-offset", "--to-offset"):
        done = run("dump", past, option, 11)
        assert done.code == 1
        assert done.err == f"{option} 11 is beyond the end: the files have the offsets 0 to 10.\n"
    assert run("dump", past, "--from-offset", 4, "--to-offset", 3).code == 2


def test_skip_noop_omits_no_op_records_and_batches_that_hold_nothing_else(past: Path) -> None:
    log = open_log(RealDisk(), f"{past}/__cluster_metadata-0").log
    append(log, [NoOpRecord()], BEGAN_MS)
    append(log, [NoOpRecord(), ConfigRecord(2, "orders", "retention.ms", "1")], BEGAN_MS)
    log.close()
    tail = rows(past, "--from-offset", 11)
    assert len(tail) == 5
    rest = rows(past, "--from-offset", 11, "--skip-noop")
    assert [(row["kind"], row.get("type")) for row in rest] == [("batch", None), ("record", "ConfigRecord")]


def test_times_are_readable_and_names_are_those_of_kafkas_tools(past: Path) -> None:
    (row,) = (
        row
        for row in rows(past, "--times", "--camel-case")
        if row.get("type") == "TopicRecord" and row["offset"] == 2
    )
    assert row["time"] == "2023-11-14 22:14:20.000Z"
    assert row["data"] == {"name": "orders", "topicId": "b29vb29vb29vb29vb29vbw"}
    assert "2023-11-14 22:14:20.000Z" in run("dump", past, "--table", "--times").out


def test_names_in_lists_are_in_camel_case_too() -> None:
    value = {"voter_id": 1, "all_voters": [{"directory_id": "x"}, "left_as_it_is"]}
    expected = {"voterId": 1, "allVoters": [{"directoryId": "x"}, "left_as_it_is"]}
    assert camel_cased(value) == expected
