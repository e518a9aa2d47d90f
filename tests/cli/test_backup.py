"""``kraftd backup`` of a running quorum, and ``kraftd restore`` of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftd.log.disk import RealDisk
from kraftd.metadata_dir.files.meta_properties import MetaProperties, write_meta_properties
from testkit.process import free_port
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import run, started, tree, write_config
from tests.cli.sample_history import END, write_history

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
ALONE = {"kraftd__shutdown__timeout__ms": "100"}


def test_a_backup_holds_all_topics_acknowledged_before_it(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, port, **ALONE)
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    first, second = tmp_path / "first", tmp_path / "second"
    with started(config):
        register_broker(port, CLUSTER_ID)
        create_topics(port, "orders")
        done = run("backup", "--bootstrap", f"127.0.0.1:{port}", "--output", first)
        assert (done.code, done.err) == (0, "")
        assert f"Backed up cluster {CLUSTER_ID} to {first}" in done.out
        assert run("snapshot", config).code == 0
        create_topics(port, "payments")
        assert run("backup", "--bootstrap", f"127.0.0.1:{port}", "--output", second).code == 0
        (tmp_path / "beside").mkdir()
        beside = write_config(tmp_path / "beside", free_port())
        refused = run("restore", "--from", second, "--config", beside)
        assert (refused.code, (tmp_path / "beside" / "data").exists()) == (1, False)
        assert f"The quorum of cluster {CLUSTER_ID} is not lost. Controller 1 at 127.0.0.1" in refused.err
        assert run("restore", "--from", second, "--config", beside, "--cluster-id", "another").code == 0
        before = tree(first)
        again = run("backup", "--bootstrap", f"127.0.0.1:{port}", "--output", first)
        assert (again.code, tree(first)) == (3, before)
        assert "is not empty" in again.err
    assert topics(first) == {"orders"}
    assert topics(second) == {"orders", "payments"}
    manifest = json.loads((second / "backup.json").read_text())
    assert manifest["cluster_id"] == CLUSTER_ID
    (tmp_path / "new").mkdir()
    new = write_config(tmp_path / "new", port, node__id="3")
    assert run("restore", "--from", second, "--config", new).code == 0
    assert topics(tmp_path / "new" / "data") == {"orders", "payments"}
    assert f"cluster.id={CLUSTER_ID}" in (tmp_path / "new" / "data" / "meta.properties").read_text()


def test_a_backup_of_a_silent_quorum_creates_no_directory(tmp_path: Path) -> None:
    done = run("backup", "--bootstrap", "127.0.0.1:1", "--output", tmp_path / "none", "--timeout", "1")
    assert done.code == 5
    assert not (tmp_path / "none").exists()


def topics(directory: Path) -> set[str]:
    done = run("topics", "--json", "-d", directory)
    assert done.code == 0, done.err
    return {json.loads(line)["topic"] for line in done.out.splitlines()}


def test_a_backup_can_be_restored_to_an_offset_under_a_new_cluster_id(tmp_path: Path) -> None:
    source = write_history(tmp_path / "past")
    write_meta_properties(RealDisk(), str(source), MetaProperties(1, CLUSTER_ID, 1, b"d" * 16), 0)
    before = tree(source)
    for end, expected in ((8, {"orders", "payments"}), (END - 1, {"orders"})):
        folder, port = tmp_path / str(end), free_port()
        folder.mkdir()
        config = write_config(folder, port, node__id="7", **ALONE)
        command = ("restore", "--from", source, "--config", config, "--as-of", end)
        done = run(*command, "--cluster-id", "AnotherClusterWithAnId")
        assert (done.code, done.err) == (0, "")
        again = run(*command)
        assert again.code == 3
        assert "is not empty" in again.err
        assert run("dump", "--verify", folder / "data").code == 0
        with started(config):
            quorum = described(port)
            assert quorum["ClusterId"] == "AnotherClusterWithAnId"
            assert [one["id"] for one in quorum["CurrentVoters"]] == [7]
            assert quorum["LeaderEpoch"] > 1_000
            register_broker(port, "AnotherClusterWithAnId")
            create_topics(port, "new")
        assert topics(folder / "data") == {*expected, "new"}
    assert tree(source) == before


@pytest.mark.parametrize("directory", ["", " "])
def test_a_backup_without_a_name_is_a_usage_error(directory: str) -> None:
    done = run("backup", "--bootstrap", "127.0.0.1:1", "--output", directory)
    assert (done.code, "must name a directory" in done.err) == (2, True)


def test_an_unfinished_backup_is_not_restored(tmp_path: Path) -> None:
    source = write_history(tmp_path / "past")
    done = run("restore", "--from", source, "--config", write_config(tmp_path))
    assert done.code == 3
    assert "backup.json" in done.err
    assert not (tmp_path / "data").exists()


def test_a_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    source = write_history(tmp_path / "past")
    (source / "backup.json").write_text(
        json.dumps(
            {
                "cluster_id": CLUSTER_ID,
                "end_offset": END,
                "epoch": 1,
                "time_ms": 0,
                "taken_ms": 0,
                "log_start": 0,
                "files": [["__cluster_metadata-0/00000000000000000000.log", 7, "00"]],
            }
        )
    )
    done = run("restore", "--from", source, "--config", write_config(tmp_path))
    assert done.code == 3
    assert "00000000000000000000.log" in done.err
    assert not (tmp_path / "data").exists()


def test_a_restore_refuses_other_voters_and_offsets_without_a_cluster(tmp_path: Path) -> None:
    source = write_history(tmp_path / "past")
    write_meta_properties(RealDisk(), str(source), MetaProperties(1, CLUSTER_ID, 1, b"d" * 16), 0)
    others = {"controller__quorum__bootstrap__servers": None}
    voters = "1@127.0.0.1:9093,2@127.0.0.1:9094"
    config = write_config(tmp_path, 9093, controller__quorum__voters=voters, **others)
    done = run("restore", "--from", source, "--config", config)
    assert done.code == 2
    assert "names 2 beside this node" in done.err
    beyond = run("restore", "--from", source, "--config", write_config(tmp_path, 9093), "--as-of", 999)
    assert beyond.code == 1 and "offset 999 is beyond the end: the log has the offsets " in beyond.err
    done = run("restore", "--from", source, "--config", write_config(tmp_path, 9093), "--as-of", 0)
    assert done.code == 1
    assert "no metadata.version yet" in done.err
    assert not (tmp_path / "data").exists()


def described(port: int) -> dict[str, Any]:
    done = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--json")
    assert done.code == 0, done.err
    quorum: dict[str, Any] = json.loads(done.out)
    return quorum
