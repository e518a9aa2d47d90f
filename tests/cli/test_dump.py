"""``kraftd dump`` shows what is in files, and says what is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import run, write_config

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


def test_sound_files_verify(data: Path) -> None:
    done = run("dump", data, "--verify")
    assert (done.code, done.out) == (0, "")
    assert "all sound" in done.err


def test_a_flipped_bit_is_found_and_told_with_its_place(data: Path) -> None:
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


def test_what_is_not_there_or_holds_nothing_is_told(data: Path, tmp_path: Path) -> None:
    missing = run("dump", tmp_path / "nowhere")
    assert missing.code == 1
    assert "there is no such file" in missing.err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("dump", empty).code == 1
