"""The part of a directory that is read, its byte ranges, and reports of damage: without Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.in_use import lock_holder
from kraftd.spark.commands.ingest import ingest_command
from kraftd.spark.commands.options import find_input
from kraftd.spark.decoding.fields import source_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs import planning
from kraftd.spark.inputs.checkpoints import checkpoint_splits, is_sound
from kraftd.spark.inputs.layout import find_replica, find_replicas
from kraftd.spark.inputs.planning import Split
from kraftd.spark.inputs.replicas import CommittedLog, committed_log, epochs_of
from kraftd.spark.source.options import parse_options
from kraftd.spark.source.pushdown import narrowed
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.source.tasks import plan_tasks
from kraftd.wire.batch import iter_batches
from kraftd.wire.crc32c import crc32c
from kraftd.wire.record_frame import VersionedRecord
from tests.spark.logs import LogDirectory

COLUMNS = pa.schema([source_schema().field(name) for name in ("offset", "epoch", "type", "name", "damage")])


def written(path: Path, *, batches: int = 40, node_id: int = 1, voters: Sequence[int] = (1,)) -> LogDirectory:
    """A leader's record, then batches of three records."""
    directory = LogDirectory(path, node_id=node_id, voters=voters)
    directory.elect(1, 1)
    for number in range(batches):
        topics = [TopicRecord(name=f"t{number}-{at}", topic_id=bytes([number, at]) * 8) for at in range(3)]
        directory.append(topics)
    return directory


def planned(*directories: LogDirectory, permissive: bool = False, split_bytes: int = 1000) -> CommittedLog:
    replicas = find_replicas([str(each.path) for each in directories])
    return committed_log(replicas, split_bytes, permissive=permissive)


def rows_of(splits: Sequence[Split], wanted: Wanted | None = None, *, permissive: bool = False) -> list[dict]:
    found = [
        each
        for split in splits
        for each in read_split(split, COLUMNS, wanted or Wanted(), permissive=permissive, show_secrets=True)
    ]
    return pa.Table.from_batches(found, schema=COLUMNS).to_pylist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "node.id is missing|cluster.id is missing"),
        ("node.id=1\ncluster.id=another\n", "node.id is missing"),  # without a version, node.id is not read
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\nnode.id=1\ncluster.id=\n", "cluster.id is missing"),
        ("version=1\nnode.id=one\ncluster.id=a\n", "node.id=one is no number"),
        ("version=2\nnode.id=1\ncluster.id=a\n", "version=2 is unknown"),
        (
            "version=1\nnode.id=1\ncluster.id=a\ncluster.id=b\n",
            "line 4: cluster.id is there twice, as a and b",
        ),
        ("\ufeffversion=1\nnode.id=1\ncluster.id=a\n", "byte order mark"),
        (None, "it is a directory"),
    ],
)
def test_an_unreadable_identity_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    one, other = written(tmp_path / "a", batches=1), written(tmp_path / "b", batches=1)
    path = other.path / "meta.properties"
    path.unlink()
    path.mkdir() if text is None else path.write_text(text)
    with pytest.raises(InputError, match=f"{path}: .*({message})"):
        find_replicas([str(one.path), str(other.path)])


def test_the_number_of_splits_of_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = written(tmp_path / "a", batches=200)
    replicas = find_replicas([str(directory.path)])
    monkeypatch.setattr(planning, "SPLIT_BYTES", 1000)
    assert len(committed_log(replicas).log.splits) > 20
    monkeypatch.setattr(planning, "MAX_SPLITS", 10)
    log = committed_log(replicas)
    assert 5 < len(log.log.splits) <= 10
    assert [row["offset"] for row in rows_of(log.log.splits)] == list(range(directory.end_offset))


@pytest.mark.parametrize("indexed", [True, False])
def test_splits_cover_every_record_once_with_and_without_an_index(tmp_path: Path, indexed: bool) -> None:
    directory = written(tmp_path / "a")
    if indexed:
        directory.index()
    log = planned(directory)
    assert len(log.log.splits) > 3
    assert [row["offset"] for row in rows_of(log.log.splits)] == list(range(121))
    assert log.end_offset == 121 and not log.notes


def test_a_wrong_index_is_not_used(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    directory.index()
    index = directory.log.with_suffix(".index")
    data = bytearray(index.read_bytes())
    for at in range(4, len(data), 8):
        data[at + 3] ^= 1
    index.write_bytes(data)
    assert [row["offset"] for row in rows_of(planned(directory).log.splits)] == list(range(121))


@pytest.mark.parametrize("left", [1, 11, 60, 61, 100])
def test_a_torn_tail_is_reported_and_not_read(tmp_path: Path, left: int) -> None:
    directory = written(tmp_path / "a")
    size = directory.log.stat().st_size
    last = directory.append([NoOpRecord() for _ in range(30)])
    with directory.log.open("r+b") as file:
        file.truncate(size + left)
    log = planned(directory)
    assert log.end_offset == last
    assert log.notes == (
        f"{directory.log}: byte {size}, offset {last}: a torn tail of {left} bytes is not read; "
        "a crash leaves one, and so does a writer at work",
    )


def test_zeroes_behind_the_last_batch_are_a_torn_tail(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    with directory.log.open("ab") as file:
        file.write(bytes(500))
    assert planned(directory).end_offset == 121


def test_damage_is_reported_with_path_byte_and_offset(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    batches = list(iter_batches(directory.log.read_bytes()))
    broken = batches[20]
    with directory.log.open("r+b") as file:
        file.seek(broken.position + 70)
        file.write(b"\xff\xff")
    with pytest.raises(InputError) as failure:
        rows_of(planned(directory).log.splits)
    text = str(failure.value)
    assert f"{directory.log}: byte {broken.position}, offset {broken.header.base_offset}: checksum" in text


@pytest.mark.parametrize("at", [8, 70])  # in the header, the length; behind it, the records
def test_permissive_loses_only_the_damaged_batch(tmp_path: Path, at: int) -> None:
    directory = written(tmp_path / "a")
    batches = list(iter_batches(directory.log.read_bytes()))
    broken = batches[20]
    with directory.log.open("r+b") as file:
        file.seek(broken.position + at)
        file.write(b"\x7f\xff")
    log = planned(directory, permissive=True)
    rows = rows_of(log.log.splits, permissive=True)
    lost = range(broken.header.base_offset, broken.header.next_offset)
    assert sorted(row["offset"] for row in rows if row["damage"] is None) == [
        offset for offset in range(121) if offset not in lost
    ]
    damaged_data = b"".join(row["damage"]["data"] for row in rows if row["damage"] is not None)
    assert len(damaged_data) == broken.header.size_bytes


def test_a_missing_segment_is_reported(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    for _ in range(2):
        directory.roll()
        directory.append([NoOpRecord()])
    middle = sorted(directory.partition.glob("*.log"))[1]
    middle.unlink()
    with pytest.raises(
        InputError, match=r"offset 122: the segment before ends at offset 121\. A segment is missing"
    ):
        planned(directory)
    log = planned(directory, permissive=True)
    assert log.end_offset == 123
    assert "offset 122: the segment before ends at offset 121" in log.notes[0]
    rows = rows_of(log.log.splits, permissive=True)
    assert [row["offset"] for row in rows if row["damage"] is None] == [*range(121), 122]
    (gap,) = (row["damage"] for row in rows if row["damage"] is not None)
    assert gap["reason"] == "offset 122 is where 121 belongs" and gap["path"] == str(directory.log)


def test_permissive_keeps_what_is_torn(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    with directory.log.open("ab") as file:
        file.write(b"torn")
    directory.roll()
    directory.append([NoOpRecord()])
    with directory.log.open("ab") as file:
        file.write(b"torn as well")
    splits = planned(directory, permissive=True).log.splits
    for tail, expected in ((True, b"torntorn as well"), (False, b"torn")):
        tasks = [task.split for task in plan_tasks(splits, Wanted(), 0, 121, tail=tail)]
        rows = rows_of(tasks, permissive=True)
        assert [row["offset"] for row in rows if row["damage"] is None] == list(range(122))
        assert b"".join(row["damage"]["data"] for row in rows if row["damage"] is not None) == expected


def test_a_control_record_of_an_unknown_type_is_reported(tmp_path: Path) -> None:
    directory = written(tmp_path / "a", batches=1)
    directory.set_voters(1)
    data = bytearray(directory.log.read_bytes())
    (batch,) = list(iter_batches(bytes(data)))[2:]
    key = data.index(bytes((0, 0, 0, 6)), batch.position + 61)
    data[key + 3] = 99
    data[batch.position + 17 : batch.position + 21] = crc32c(data[batch.position + 21 :]).to_bytes(4, "big")
    directory.log.write_bytes(data)
    text = f"{directory.log}: byte {batch.position}, offset 4: record of offset 4: control record type 99 is"
    with pytest.raises(InputError, match=text):
        rows_of(planned(directory).log.splits)
    rows = rows_of(planned(directory, permissive=True).log.splits, permissive=True)
    assert rows[-1]["damage"]["data"] == bytes(data[batch.position :])


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_truncated_checkpoint_is_reported_also_between_batches(tmp_path: Path, left: int) -> None:
    directory = written(tmp_path / "a")
    path = directory.snapshot(50, [VersionedRecord(NoOpRecord(), 0)])
    batches = list(iter_batches(path.read_bytes()))
    end = batches[left].position
    with path.open("r+b") as file:
        file.truncate(end)
    (checkpoint,) = find_replica(str(directory.path)).checkpoints
    with pytest.raises(InputError, match=f"{path}: byte {end}, offset {left}: the checkpoint is not whole"):
        checkpoint_splits(checkpoint)
    assert not is_sound(checkpoint)


def test_a_gap_within_a_segment_is_reported(tmp_path: Path) -> None:
    directory = written(tmp_path / "a", batches=3)
    directory.end_offset += 5
    directory.append([NoOpRecord()])
    with pytest.raises(InputError, match="offset 15 is where 10 belongs"):
        rows_of(planned(directory).log.splits)


def test_records_that_a_majority_holds_are_committed(tmp_path: Path) -> None:
    leader, follower, behind = (
        written(tmp_path / name, node_id=node, voters=(1, 2, 3)) for node, name in enumerate("abc", 1)
    )
    leader.append([NoOpRecord()])
    follower.append([NoOpRecord()])
    leader.append([NoOpRecord(), NoOpRecord()])
    log = planned(leader, follower, behind)
    assert log.end_offset == 122
    assert "offsets 122 to 123 are not held by a majority" in log.notes[0]


def test_records_that_a_later_leader_replaced_are_not_read(tmp_path: Path) -> None:
    old = written(tmp_path / "a", node_id=1, voters=(1, 2, 3))
    new = written(tmp_path / "b", node_id=2, voters=(1, 2, 3))
    old.append([NoOpRecord() for _ in range(9)])  # never replicated
    new.elect(2, 2)
    new.append([TopicRecord(name="kept", topic_id=b"k" * 16)])
    third = copy_of(new, tmp_path / "c", node_id=3)
    log = committed_log(find_replicas([str(old.path), str(new.path), str(third)]))
    assert log.replica.path == str(new.path) and log.end_offset == 123
    assert [row["name"] for row in rows_of(log.log.splits)][-1] == "kept"
    assert epochs_of(log.log) == [(1, 0), (2, 121)]


def copy_of(directory: LogDirectory, path: Path, node_id: int) -> Path:
    """Copy a directory, with another node's id in it."""
    shutil.copytree(directory.path, path)
    properties = (path / "meta.properties").read_text().split("node.id=")[0]
    (path / "meta.properties").write_text(f"{properties}node.id={node_id}\n")
    return path


def test_one_directory_of_three_voters_does_not_prove_a_commit(tmp_path: Path) -> None:
    log = planned(written(tmp_path / "a", voters=(1, 2, 3)))
    assert log.end_offset == 121
    assert "1 of 3 voters cannot prove what is committed" in log.notes[0]


@pytest.mark.parametrize("node_id", [1, 7])  # the leader's own directory again, and an observer's
def test_only_voters_count_towards_a_majority_and_each_once(tmp_path: Path, node_id: int) -> None:
    behind = written(tmp_path / "b", node_id=2, voters=(1, 2, 3))
    leader = written(tmp_path / "a", voters=(1, 2, 3))
    leader.append([NoOpRecord()])
    other = copy_of(leader, tmp_path / "c", node_id)
    log = committed_log(find_replicas([str(leader.path), str(behind.path), str(other)]))
    assert log.end_offset == 121
    assert "offsets 121 to 121 are not held by a majority" in log.notes[0]


def test_voters_added_after_the_election_count(tmp_path: Path) -> None:
    leader = written(tmp_path / "a", batches=1)
    leader.set_voters(1, 2)
    leader.set_voters(1, 2, 3)
    followers = [copy_of(leader, tmp_path / f"n{node_id}", node_id) for node_id in (2, 3)]
    leader.append([NoOpRecord()])
    paths = [str(leader.path), *map(str, followers)]
    for split_bytes in (100, 1000):
        assert committed_log(find_replicas(paths), split_bytes).end_offset == leader.end_offset - 1
        assert "1 of 3 voters" in committed_log(find_replicas(paths[:1]), split_bytes).notes[0]


def test_records_that_a_checkpoint_covers_are_committed(tmp_path: Path) -> None:
    leader = written(tmp_path / "a", voters=(1, 2, 3))
    behind = written(tmp_path / "b", batches=3, node_id=2, voters=(1, 2, 3))
    assert planned(leader, behind).end_offset == 10
    leader.snapshot(100, [])
    log = planned(leader, behind)
    assert log.end_offset == 100
    assert "offsets 100 to 120 are not held by a majority" in log.notes[0]


def test_a_directory_of_an_observer_does_not_prove_a_commit(tmp_path: Path) -> None:
    (note,) = planned(written(tmp_path / "a", node_id=7)).notes
    assert "a directory of no voter cannot prove what is committed" in note


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a"), written(tmp_path / "b")
    (other.path / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=2\n")
    with pytest.raises(InputError, match=f"{other.path} belongs to cluster another, {one.path} to cluster"):
        planned(one, other)


HOLDER = (
    "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
)


def test_a_directory_in_use_is_refused_with_the_process_that_holds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = written(tmp_path / "a")
    find_input([str(directory.path)], "failfast", None, pytest.fail, None)
    assert lock_holder(str(directory.path)) is None and capsys.readouterr().err == ""
    command = [sys.executable, "-c", HOLDER, str(directory.path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None and node.stdout.readline() == b"\n"
        assert lock_holder(str(directory.partition)) == lock_holder(str(directory.log)) == node.pid
        _, log = find_input([str(directory.path)], "failfast", None, pytest.fail, None)
        assert log.end_offset == 121
        assert capsys.readouterr().err == (
            f"kraftd-spark: {directory.path}: in use by process {node.pid}; what is written from offset 121 "
            "on is not read\n"
        )
        node.communicate(b"\n")
    assert lock_holder(str(directory.path)) is None


def test_a_path_that_is_no_controllers_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, reason in (("empty", "holds no segment"), ("file", "is no segment"), ("none", "no such file")):
        with pytest.raises(InputError, match=f"{tmp_path / name}: {reason}"):
            find_replicas([str(tmp_path / name)])


def test_offsets_times_and_files_limit_the_read(tmp_path: Path) -> None:
    directory = written(tmp_path / "a")
    splits = planned(directory).log.splits
    assert [row["offset"] for row in rows_of(splits, Wanted(first_offset=50, last_offset=53))] == [
        50,
        51,
        52,
        53,
    ]
    late = Wanted(first_timestamp_ms=directory.timestamp_ms() - 4000)
    assert [row["offset"] for row in rows_of(splits, late)] == [118, 119, 120]
    assert find_replicas([f"file://{directory.path}"])[0].segments
    assert find_replicas([str(directory.log)])[0].segments[0].path == str(directory.log)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": "/x", "mode": "DROPMALFORMED"}, "FAILFAST and PERMISSIVE are known"),
        ({"path": "/x", "colour": "red"}, "option colour is not known"),
        ({"path": "/x", "splitBytes": "0"}, "at least 1"),
        ({"path": "/x", "endingOffset": "last"}, "is not a number"),
        ({"paths": "/x"}, "a JSON list of paths"),
        ({}, "no path"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_options(options)


def test_ingest_requires_either_a_directory_or_a_listener(tmp_path: Path) -> None:
    for inputs in ([], ["--input", str(tmp_path), "--bootstrap-server", "127.0.0.1:1"]):
        done = CliRunner().invoke(ingest_command, ["--output", str(tmp_path / "out"), *inputs])
        assert done.exit_code == 2 and "--bootstrap-server" in done.stderr


@pytest.mark.parametrize("micros", [0, 1, 999])
def test_a_filter_on_a_time_keeps_every_millisecond_that_passes_it(micros: int) -> None:
    ms = 1_700_000_000_005
    at = datetime.fromtimestamp(ms / 1000, UTC).replace(microsecond=5000 + micros)
    tests = {
        EqualTo: at.__eq__, GreaterThan: at.__lt__, GreaterThanOrEqual: at.__le__, LessThan: at.__gt__,
        LessThanOrEqual: at.__ge__,
    }  # fmt: skip
    for filter_of, passes in tests.items():
        wanted = narrowed(Wanted(), [filter_of(("timestamp",), at)])
        for near in range(-2, 3):
            time = at - timedelta(microseconds=micros) + timedelta(milliseconds=near)
            if passes(time):
                assert wanted.first_timestamp_ms <= ms + near <= wanted.last_timestamp_ms, filter_of
        assert wanted != Wanted()
