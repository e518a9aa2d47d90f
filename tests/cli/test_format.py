"""``kraftd format`` prepares directories as Kafka's storage tool does, and damages nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftd.types import parse_uuid
from testkit.java import tools
from tests.cli.run import Run, fill, mounted, run, tree, write_config

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def meta(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def format_(config: Path, *more: object) -> Run:
    return run("format", "--config", config, "--cluster-id", CLUSTER, *more)


def test_a_standalone_controller_is_formatted(tmp_path: Path) -> None:
    done = format_(write_config(tmp_path, 9093), "--standalone")
    assert (done.code, done.err) == (0, "")
    assert "metadata.version 4.3-IV0" in done.out
    properties = meta(tmp_path / "data")
    assert (properties["cluster.id"], properties["node.id"], properties["version"]) == (CLUSTER, "1", "1")
    assert len(parse_uuid(properties["directory.id"])) == 16
    assert {"bootstrap.checkpoint", "meta.properties"} < set(tree(tmp_path / "data"))


def test_every_directory_is_formatted(tmp_path: Path) -> None:
    dirs = f"{tmp_path}/a,{tmp_path}/b"
    config = write_config(tmp_path, 9093, log__dirs=dirs, metadata__log__dir=f"{tmp_path}/m")
    assert format_(config, "-N").code == 0
    ids = {meta(tmp_path / name)["directory.id"] for name in ("a", "b", "m")}
    assert len(ids) == 3


def test_the_voters_must_be_named_when_the_quorum_is_dynamic(tmp_path: Path) -> None:
    done = format_(write_config(tmp_path, 9093))
    assert done.code == 2
    assert "--standalone" in done.err and "--initial-controllers" in done.err
    assert not (tmp_path / "data").exists()


def test_a_static_quorum_needs_no_flag_and_takes_none(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9093, controller__quorum__voters="1@127.0.0.1:9093")
    assert format_(config, "--standalone").code == 2
    assert format_(config).code == 0


def test_the_flags_exclude_one_another(tmp_path: Path) -> None:
    done = format_(write_config(tmp_path, 9093), "-s", "-N")
    assert done.code == 2
    assert "exclude one another" in done.err


def test_a_formatted_directory_is_not_formatted_again(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9093)
    format_(config, "-s")
    before = tree(tmp_path / "data")
    again = format_(config, "-s")
    assert (again.code, tree(tmp_path / "data")) == (3, before)
    assert "--ignore-formatted" in again.err
    ignored = format_(config, "-s", "-g")
    assert (ignored.code, tree(tmp_path / "data")) == (0, before)


def test_a_directory_of_another_cluster_or_node_is_not_changed(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9093)
    format_(config, "-s")
    before = tree(tmp_path / "data")
    other_cluster = run("format", "-c", config, "-t", "AnotherClusterAnotherA", "-s", "-g")
    assert other_cluster.code == 3
    assert CLUSTER in other_cluster.err
    other_node = format_(write_config(tmp_path, 9093, node__id="2"), "-s", "-g")
    assert other_node.code == 3
    assert "node" in other_node.err
    assert tree(tmp_path / "data") == before


@pytest.mark.parametrize(
    "wrong",
    [
        ("--release-version", "9.9"),
        ("--feature", "no.such.feature=1"),
        ("--feature", "kraft.version"),
        ("--feature", "kraft.version=x"),
        ("--feature", "kraft.version=0"),
        ("--feature", "metadata.version=30", "--release-version", "4.3"),
        ("--add-scram", "SCRAM-SHA-256=[password=x]"),
        ("--add-scram", "SCRAM-SHA-256=[name=a,password=x]", "--release-version", "3.4"),
    ],
)
def test_invalid_settings_are_refused_before_anything_is_written(
    tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    done = format_(write_config(tmp_path, 9093), "-s", *wrong)
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("voters", ["", "1@a:9093", "1@a:9093:x", "x@a:9093:MvDxzVmcRsaTz33bUuRU6A"])
def test_initial_controllers_that_are_not_voters_are_refused(tmp_path: Path, voters: str) -> None:
    done = format_(write_config(tmp_path, 9093), "-I", voters)
    assert done.code == 2
    assert "id@host:port" in done.err or "directory id" in done.err


def test_a_full_disk_is_reported_and_formatting_works_once_there_is_space(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=64k") as small:
        filler = fill(small)
        config = write_config(tmp_path, 9093, log__dirs=f"{small}/data")
        full = format_(config, "-s")
        assert full.code == 1
        assert str(small) in full.err
        filler.unlink()
        assert format_(config, "-s").code == 0


def test_a_read_only_disk_is_reported(tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed:
        done = format_(write_config(tmp_path, 9093, log__dirs=f"{fixed}/data"), "-s")
        assert done.code == 1
        assert str(fixed) in done.err


def test_a_file_in_place_of_a_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    done = format_(write_config(tmp_path, 9093), "-s")
    assert done.code in (1, 3)
    assert str(tmp_path / "data") in done.err
    assert (tmp_path / "data").read_text() == "mine"


def test_a_second_directory_that_cannot_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    done = format_(write_config(tmp_path, 9093, log__dirs=f"{tmp_path}/a,{tmp_path}/b"), "-N")
    assert done.code == 0 and f"Left out: {tmp_path}/b" in done.err
    assert meta(tmp_path / "a")["cluster.id"] == CLUSTER and (tmp_path / "b").read_text() == "mine"


@pytest.mark.kafka
def test_kafkas_storage_tool_reads_the_formatted_directory(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9093)
    assert format_(config, "-s").code == 0
    done = tools().run("storage", "info", "--config", config).check()
    assert CLUSTER in done.out


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("static", "more"),
    [
        (False, ["--standalone"]),
        (False, ["--no-initial-controllers"]),
        (False, ["--initial-controllers", "1@127.0.0.1:9093:MvDxzVmcRsaTz33bUuRU6A"]),
        (False, ["--initial-controllers", "2@127.0.0.1:9093:MvDxzVmcRsaTz33bUuRU6A"]),
        (False, []),
        (True, []),
        (True, ["--standalone"]),
        (True, ["--no-initial-controllers"]),
        (False, ["-s", "--release-version", "3.9"]),
        (False, ["-s", "--release-version", "3.3-IV3"]),
        (False, ["-s", "--feature", "group.version=0", "--feature", "transaction.version=1"]),
        (False, ["-s", "--feature", "eligible.leader.replicas.version=1", "-r", "3.9"]),
        (False, ["-s", "--feature", "metadata.version=25"]),
        (False, ["-s", "--feature", "kraft.version=0"]),
        (True, ["--feature", "kraft.version=1"]),
    ],
)
def test_the_same_arguments_write_the_same_records_as_kafkas_tool(
    tmp_path: Path, static: bool, more: list[str]
) -> None:
    voters = "1@127.0.0.1:9093" if static else None
    records = []
    for name in ("ours", "theirs"):
        home = tmp_path / name
        home.mkdir()
        config = write_config(home, 9093, controller__quorum__voters=voters)
        if name == "ours":
            code = format_(config, *more).code
        else:
            code = tools().run("storage", "format", "-c", config, "-t", CLUSTER, *more).code
        files = sorted(path for path in tree(home / "data")) if (home / "data").exists() else []
        shown = run("dump", home / "data", "--table").out if files else ""
        # Directory ids, times and paths differ.
        contents = [line.split(None, 2)[2:] for line in shown.splitlines() if "Record" in line]
        records.append((code == 0, files, contents))
    assert records[0] == records[1]


def test_formatting_by_a_relative_path_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path, 9093, log__dirs="data")
    assert format_(config, "-s").code == 0
    assert os.path.exists("data/meta.properties")
