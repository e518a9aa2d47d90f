"""`kraftd dump` shows the records of a broker's topics, and takes no gap of a cleaned log for damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftd.log.disk import RealDisk
from kraftd.log.partition_metadata import encode_topic_id
from kraftd.metadata_dir.showing.dump import Row, dump, verify
from kraftd.wire.keyed_records import KeyedRecord, build_keyed_batch
from testkit.keyed_batches import marker_batch
from tests.cli.run import run

NOW_MS = 1_700_000_000_123
TOPIC_ID = bytes(range(16))


def batch(base_offset: int, *records: KeyedRecord) -> bytes:
    return build_keyed_batch(records, NOW_MS, base_offset=base_offset, leader_epoch=4)


def marker(base_offset: int) -> bytes:
    return marker_batch(base_offset, 7, 2, is_commit=True)


def segment(folder: Path, *batches: bytes, partition: str = "orders-3") -> Path:
    """The first segment of a partition, with the files beside it that a start needs."""
    directory = folder / partition
    directory.mkdir()
    (directory / "partition.metadata").write_bytes(encode_topic_id(TOPIC_ID))
    path = directory / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def record_rows(path: Path) -> list[Row]:
    return [row for row in dump(RealDisk(), str(path)) if row["kind"] != "batch"]


def test_records_of_a_topic_are_shown_as_text_or_base64(tmp_path: Path) -> None:
    headers = (("source", b"shell"), ("none", None))
    path = segment(
        tmp_path, batch(0, KeyedRecord(b"k", b"paid", headers), KeyedRecord(None, b"\xff")), marker(2)
    )
    first, second, last = record_rows(path)
    assert first == {
        "kind": "record",
        "path": str(path),
        "offset": 0,
        "timestamp_ms": NOW_MS,
        "type": "Record",
        "version": 2,
        "epoch": 4,
        "data": {"key": "k", "value": "paid", "headers": [["source", "shell"], ["none", None]]},
    }
    assert second["data"] == {"key": None, "value": {"base64": "/w=="}, "headers": []}
    assert (last["kind"], last["type"], last["text"]) == (
        "control",
        "COMMIT",
        "producer 7 of epoch 2 commits, by coordinator epoch 0",
    )
    assert list(verify(RealDisk(), str(path))) == []


@pytest.mark.parametrize("partition", ["orders-3", "__consumer_offsets-3"])
def test_offsets_that_a_cleaner_left_out_are_no_damage(tmp_path: Path, partition: str) -> None:
    path = segment(tmp_path, marker(7), marker(20), partition=partition)
    assert [row["offset"] for row in record_rows(path)] == [7, 20]
    assert list(verify(RealDisk(), str(path))) == []
    path.write_bytes(path.read_bytes() + marker(20))
    assert [row["kind"] for row in record_rows(path)] == ["control", "control", "damage", "control"]
    assert [row["reason"] for row in verify(RealDisk(), str(path))] == ["offset 20 is where 21 belongs"]


def test_the_command_shows_a_partition_and_its_topic_id(tmp_path: Path) -> None:
    path = segment(tmp_path, batch(0, KeyedRecord(b"k", b"paid")), marker(1))
    done = run("dump", path.parent, "--table")
    assert done.code == 0 and done.err == ""
    assert [line.split()[:3] for line in done.out.splitlines()[2:]] == [
        ["0", "4", "Record"],
        ["1", "0", "COMMIT"],
    ]
    named = run("dump", path.parent / "partition.metadata")
    assert named.code == 0 and json.loads(named.out)["type"] == "partition.metadata"
