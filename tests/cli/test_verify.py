"""``kraftd dump --verify`` of a data directory fails wherever a start would refuse it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftd.config import load
from kraftd.host.storage import open_storage
from kraftd.log.disk import RealDisk
from kraftd.log.errors import StorageError
from kraftd.log.overlay_disk import OverlayDisk
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.bootstrap import write_bootstrap
from kraftd.wire.record_frame import VersionedRecord
from tests.cli.run import run, tree, write_config
from tests.cli.sample_history import write_history

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
STATE = "__cluster_metadata-0/quorum-state"
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The file of a formatted controller with a log."""
    file = write_config(tmp_path, 9093)
    assert run("format", "-c", file, "-t", CLUSTER_ID, "--standalone").code == 0
    write_history(tmp_path / "data")
    state = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "A" * 22}
    (tmp_path / "data" / STATE).write_text(json.dumps({**state, "data_version": 1}))
    return file


def starts(config: Path) -> bool:
    try:
        storage = open_storage(RealDisk(), load(config), 0, lambda: b"i" * 16)
        try:
            storage.durable_state()
        finally:
            storage.close()
    except StorageError:
        return False
    return True


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_older(path: Path) -> None:
    """Put a copy of an earlier epoch than the log's in the file's place."""
    state = json.loads(path.read_text())
    path.write_text(
        json.dumps(state | {"leaderEpoch": state["leaderEpoch"] - 1, "leaderId": -1, "votedId": -1})
    )


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    path.write_bytes(b"\x07garbled" + path.read_bytes()[8:])


def leads_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def leads_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def becomes_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


BREAKINGS: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("meta.properties", remove),
    ("meta.properties", empty),
    ("meta.properties", garble),
    (SEGMENT, remove),
    (SEGMENT, empty),
    (SEGMENT, halve),
    (SEGMENT, garble),
    (STATE, empty),
    (STATE, garble),
    ("__cluster_metadata-0/partition.metadata", garble),
    ("__cluster_metadata-0/leader-epoch-checkpoint", remove),
    ("bootstrap.checkpoint", garble),
    *(
        (name, harm)
        for name in ("bootstrap.checkpoint", "meta.properties", SEGMENT, STATE)
        for harm in (leads_nowhere, leads_to_itself, becomes_a_directory)
    ),
)


@pytest.mark.parametrize(("name", "harm"), BREAKINGS)
def test_verify_fails_for_a_directory_that_a_start_refuses(
    config: Path, name: str, harm: Callable[[Path], None]
) -> None:
    data = config.parent / "data"
    path = data / name
    assert run("dump", "--verify", data).code == 0
    harm(path)
    before = tree(data)
    done = run("dump", "--verify", data)
    assert tree(data) == before, "nothing was changed"
    assert done.code == 3 or starts(config), done
    assert all(str(data) in row["path"] for row in map(json.loads, done.out.splitlines()))


@pytest.mark.parametrize("harm", [remove, empty, make_older])
def test_a_lost_quorum_state_is_refused_like_an_empty_one(config: Path, harm: Callable[[Path], None]) -> None:
    """The node may have voted in an epoch of which nothing tells any more."""
    data = config.parent / "data"
    assert starts(config)
    harm(data / STATE)
    done = run("dump", "--verify", data)
    (row,) = map(json.loads, done.out.splitlines())
    assert (done.code, row["path"], starts(config)) == (3, str(data / STATE), False)
    assert "voting twice" in row["reason"]
    assert "quorum recover" in row["reason"]


def test_a_formatted_directory_without_a_log_starts_without_quorum_state(tmp_path: Path) -> None:
    file = write_config(tmp_path, 9093)
    assert run("format", "-c", file, "-t", CLUSTER_ID, "--standalone").code == 0
    assert run("dump", "--verify", tmp_path / "data").code == 0
    assert starts(file)


OTHER_ID = "PJ0y2k0hRWuT2vVYJ9yS9Q"


@pytest.mark.parametrize(
    ("key", "line"), [("cluster.id", f"cluster.id={OTHER_ID}"), ("directory.id", f"directory.id={OTHER_ID}")]
)
def test_an_id_changed_in_meta_properties_is_refused_with_both_ids(config: Path, key: str, line: str) -> None:
    data = config.parent / "data"
    assert starts(config)
    path = data / "meta.properties"
    was = next(one for one in path.read_text().splitlines() if one.startswith(key))
    for new in (line, ""):
        path.write_text(path.read_text().replace(was, new))
        done = run("dump", "--verify", data)
        assert done.code == 3, done
        reasons = [json.loads(row)["reason"] for row in done.out.splitlines()]
        assert any(was in one and (new.partition("=")[2] in one) for one in reasons) or not new, reasons
        assert not starts(config)
        path.write_text(path.read_text().replace(new, was) if new else f"{path.read_text()}{was}\n")
        assert starts(config)


def test_an_own_vote_with_another_directory_id_is_refused_without_a_last_start(config: Path) -> None:
    """A directory of Apache Kafka has no file that kraftd has written."""
    data = config.parent / "data"
    state = {"leaderId": -1, "leaderEpoch": 1, "votedId": 1, "votedDirectoryId": OTHER_ID, "data_version": 1}
    (data / STATE).write_text(json.dumps(state))
    done = run("dump", "--verify", data)
    assert (done.code, starts(config)) == (3, False)
    assert f"voted for itself as directory {OTHER_ID}" in done.out


def test_verify_fails_for_intact_records_that_a_start_cannot_use(config: Path) -> None:
    data = config.parent / "data"
    write_bootstrap(RealDisk(), str(data), [VersionedRecord(TopicRecord("a", b"a" * 16), 0)], 0)
    done = run("dump", "--verify", data)
    (row,) = map(json.loads, done.out.splitlines())
    assert (done.code, row["refuses_start"], starts(config)) == (3, True, False)
    assert "metadata.version" in row["reason"]


def test_verify_reports_what_a_start_would_repair(config: Path) -> None:
    log = config.parent / "data" / SEGMENT
    log.write_bytes(log.read_bytes() + b"torn")
    done = run("dump", "--verify", config.parent / "data")
    assert "A start would report: " in done.err and "4 bytes behind it are a write" in done.err
    assert starts(config)


def test_verify_names_the_damaged_time_index_and_no_other_file(config: Path) -> None:
    time_index = config.parent / "data" / SEGMENT.replace(".log", ".timeindex")
    time_index.write_bytes(b"\x01" * 7)
    done = run("dump", "--verify", config.parent / "data")
    assert done.code == 3
    rows: list[dict[str, Any]] = [json.loads(line) for line in done.out.splitlines()]
    assert [row["path"] for row in rows] == [str(time_index)]


def test_an_overlay_changes_files_in_memory_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    disk = OverlayDisk(RealDisk())
    file = disk.open(str(path))
    file.truncate(6)
    file.write(8, b"ab")
    assert (file.size_bytes(), file.read(4, 10)) == (10, b"45\x00\x00ab")
    file.truncate(9)
    assert disk.read_bytes(str(path)) == b"012345\x00\x00a"
    disk.rename(str(path), f"{tmp_path}/other")
    assert disk.list_names(str(tmp_path)) == ["other"] and not disk.exists(str(path))
    disk.remove(f"{tmp_path}/other")
    assert disk.list_names(str(tmp_path)) == []
    with pytest.raises(FileNotFoundError):
        disk.open(str(path))
    disk.close()
    assert path.read_bytes() == b"0123456789"
