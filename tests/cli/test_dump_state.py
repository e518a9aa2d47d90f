"""``kraftd dump FILE`` recognizes the files beside the log."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from kraftd.log.data.transaction_index import AbortedTransaction, encode_aborted
from kraftd.log.disk import RealDisk
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.wire.producer_snapshot import SnapshotEntry, encode_producers
from tests.cli.run import run, write_config
from tests.cli.sample_history import write_history

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
PARTITION = "__cluster_metadata-0"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A formatted directory with a log and an election state."""
    file = write_config(tmp_path, 9093)
    assert run("format", "-c", file, "-t", CLUSTER_ID, "--standalone").code == 0
    data = write_history(tmp_path / "data")
    QuorumStateFile(RealDisk(), str(data / PARTITION)).write(QuorumStateData(leader_id=1, leader_epoch=4), 1)
    return data


def rows(path: Path, *more: str) -> list[dict[str, Any]]:
    done = run("dump", path, *more)
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


def damage(path: Path) -> dict[str, Any]:
    """Return the only damaged place of a file, and check that --verify reports it as well."""
    done, verified = run("dump", path), run("dump", "--verify", path)
    assert (done.code, verified.code) == (3, 3)
    (row,) = [json.loads(line) for line in verified.out.splitlines()]
    assert json.loads(done.out.splitlines()[-1]) == row
    assert row["path"] == str(path)
    return dict(row)


def test_files_that_hold_one_object_are_shown_with_their_type(data: Path) -> None:
    (state,) = rows(data / PARTITION / "quorum-state")
    assert (state["type"], state["version"], state["offset"]) == ("quorum-state", 1, None)
    assert (state["data"]["leaderId"], state["data"]["leaderEpoch"]) == (1, 4)
    (properties,) = rows(data / "meta.properties")
    assert (properties["data"]["cluster.id"], properties["data"]["node.id"]) == (CLUSTER_ID, "1")
    (metadata,) = rows(data / PARTITION / "partition.metadata")
    assert metadata["data"] == {"version": "0", "topic_id": METADATA_TOPIC_ID}


def test_epochs_are_shown_with_their_first_offsets(data: Path) -> None:
    path = data / PARTITION / "leader-epoch-checkpoint"
    path.write_text("0\n2\n1 0\n4 17\n")
    assert [row["data"] for row in rows(path)] == [
        {"epoch": 1, "start_offset": 0},
        {"epoch": 4, "start_offset": 17},
    ]
    assert [row["offset"] for row in rows(path, "--from-offset", "1")] == [17]


def test_offsets_of_a_log_directory_are_shown_with_their_partitions(tmp_path: Path) -> None:
    for name in ("recovery-point", "log-start", "replication", "cleaner"):
        path = tmp_path / f"{name}-offset-checkpoint"
        path.write_text("0\n2\nbig 0 41000\na.b 12 0\n")
        assert [(row["type"], row["offset"], row["data"]) for row in rows(path)] == [
            (path.name, 41000, {"topic": "big", "partition": 0, "offset": 41000}),
            (path.name, 0, {"topic": "a.b", "partition": 12, "offset": 0}),
        ]
    path.write_text("0\n2\nbig 0\n")
    assert damage(path)["reason"] == "line 3 is malformed: 'big 0'"


def test_index_entries_are_shown_up_to_kafkas_zero_padding(tmp_path: Path) -> None:
    index = tmp_path / f"{100:020d}.index"
    index.write_bytes(struct.pack(">4I", 9, 4200, 30, 9000) + bytes(800))
    assert [(row["offset"], row["data"]) for row in rows(index)] == [
        (109, {"position": 4200}),
        (130, {"position": 9000}),
    ]
    times = tmp_path / f"{100:020d}.timeindex"
    times.write_bytes(struct.pack(">qIqI", 1_700_000_000_000, 9, 1_700_000_060_000, 30) + bytes(1200))
    first, second = rows(times, "--times")
    assert (first["offset"], first["time"]) == (109, "2023-11-14 22:13:20.000Z")
    assert (second["offset"], second["data"]) == (130, {"timestamp_ms": 1_700_000_060_000})
    table = run("dump", "--table", "--times", times).out.splitlines()
    assert table[2].split()[:5] == ["109", "timeindex", "0", "2023-11-14", "22:13:20.000Z"]


def test_aborted_transactions_and_producers_of_a_partition_are_shown(tmp_path: Path) -> None:
    aborted = tmp_path / f"{100:020d}.txnindex"
    aborted.write_bytes(
        encode_aborted(AbortedTransaction(7, 90, 104, 101))
        + encode_aborted(AbortedTransaction(8, 101, 120, 121))
    )
    assert [(row["type"], row["offset"], row["data"]) for row in rows(aborted)] == [
        (
            "txnindex",
            104,
            {"producer_id": 7, "first_offset": 90, "last_offset": 104, "last_stable_offset": 101},
        ),
        (
            "txnindex",
            120,
            {"producer_id": 8, "first_offset": 101, "last_offset": 120, "last_stable_offset": 121},
        ),
    ]
    producers = tmp_path / f"{130:020d}.snapshot"
    producers.write_bytes(encode_producers([SnapshotEntry(7, 2, 11, 128, 3, 1_700_000_000_000, 5, 125)]))
    (row,) = rows(producers, "--times")
    assert (row["type"], row["version"], row["time"]) == ("snapshot", 1, "2023-11-14 22:13:20.000Z")
    assert row["data"] == {
        "producer_id": 7,
        "producer_epoch": 2,
        "last_sequence": 11,
        "last_offset": 128,
        "offset_delta": 3,
        "timestamp_ms": 1_700_000_000_000,
        "coordinator_epoch": 5,
        "current_txn_first_offset": 125,
    }


@pytest.mark.parametrize(
    ("name", "content", "position", "reason"),
    [
        ("quorum-state", b"", 0, "empty"),
        ("quorum-state", b'{"leaderId":1,"data_version":1}', 0, "leaderEpoch is missing"),
        ("meta.properties", b"version=1\n", 0, "cluster.id is missing"),
        (
            "__cluster_metadata-0/partition.metadata",
            b"version: 0\ntopic_id: Nx_7lyWBRrSmxW_wwvmA5Q",
            0,
            "the metadata log has",
        ),
        ("partition.metadata", b"", 0, "version is missing"),
        ("leader-epoch-checkpoint", b"0\n3\n1 0\n", 0, "no file of epochs"),
        (f"{0:020d}.index", struct.pack(">4I", 9, 4200, 9, 9000), 8, "do not ascend"),
        (f"{0:020d}.index", struct.pack(">2I", 9, 4200) + b"abc", 8, "3 bytes are no entry of 8"),
        (f"{0:020d}.index", bytes(8) + struct.pack(">2I", 9, 4200), 0, "zeros has others behind"),
        (f"{0:020d}.timeindex", struct.pack(">qIqI", 50, 9, 40, 30), 12, "do not ascend"),
        (f"{0:020d}.txnindex", bytes(34) + b"abc", 34, "3 bytes are no entry of 34"),
        (f"{9:020d}.txnindex", struct.pack(">hqqqq", 0, 7, 0, 5, 6), 0, "ends at 5, before the segment"),
        (f"{9:020d}.snapshot", encode_producers([])[:-1] + b"?", 0, "the checksum is wrong"),
    ],
)
def test_damage_of_a_state_file_is_reported_with_its_position(
    tmp_path: Path, name: str, content: bytes, position: int, reason: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    found = damage(path)
    assert found["position"] == position and reason in found["reason"]


def test_verify_names_the_undamaged_files_of_a_directory(data: Path) -> None:
    paths = [one for one in data.rglob("*") if one.is_file() and one.name != ".lock"]
    assert {"quorum-state", "meta.properties", f"{0:020d}.index"} <= {one.name for one in paths}
    done = run("dump", "--verify", *paths)
    assert (done.code, done.out) == (0, ""), done
