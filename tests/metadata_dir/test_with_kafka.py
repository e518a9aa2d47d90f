"""The files of this package and Apache Kafka's tools and controller: each reads the other's."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kraftd.log.disk import RealDisk
from kraftd.log.errors import DirectoryLocked
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.features import bootstrap_records, format_levels
from kraftd.metadata.metadata_version import LATEST_PRODUCTION, MINIMUM_VERSION, parse_version, version_name
from kraftd.metadata_dir.directory import open_directory
from kraftd.metadata_dir.files.checkpoint import (
    BOOTSTRAP_ID,
    CheckpointReader,
    CheckpointWriter,
    checkpoint_path,
)
from kraftd.metadata_dir.files.high_watermark import HighWatermarkFile, Mark
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile, encode_quorum_state
from kraftd.metadata_dir.formatting.format import FormatPlan, format_directories
from kraftd.metadata_dir.formatting.scram import parse_scram
from kraftd.metadata_dir.formatting.voters import parse_voters
from kraftd.metadata_dir.metadata_log import LogSettings
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.showing.dump import dump, find_dumpable, verify
from kraftd.types import OffsetAndEpoch, parse_uuid
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch, values
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from testkit.java import tools
from testkit.node import Controller
from testkit.process import free_port
from tests.kafka.shell import metadata_shell

pytestmark = pytest.mark.kafka

DISK = RealDisk()
CLUSTER = "xJit4XNAR_aVPxgVAz4Qsg"
VOTERS = "3@localhost:9093:J8aAPcfLQt2bqs1JT_rMgQ,4@[::1]:9094:hU1znZ7uSBqQzCNcN5L0sQ"
SCRAM = 'SCRAM-SHA-512=[name=alice,iterations=8192,salt="c2FsdA==",password=alice-secret]'


def new_uuid() -> bytes:
    return parse_uuid("abcdefghijklmnopqrstuA")


def records_of(path: str) -> list[Any]:
    """The contents of a checkpoint without times: control and metadata records in order, and its batches."""
    found: list[Any] = []
    for row in dump(DISK, path):
        row = {key: value for key, value in row.items() if key not in ("path", "timestamp_ms", "crc")}
        if row["kind"] == "control" and row["type"] == "SNAPSHOT_HEADER":
            row["data"].pop("last_contained_log_timestamp")
        if row["kind"] == "control" and row["type"] == "KRAFT_VOTERS":
            row["data"]["voters"].sort(
                key=lambda voter: voter["voter_id"]
            )  # Kafka's order is that of a hash map
        found.append(row)
    return found


# name: (arguments of Kafka's tool, node id, static voters, initial voters, release, features, SCRAM)
FORMATS: dict[str, tuple[list[str], int, bool, str | None, str | None, dict[str, int], list[str]]] = {
    "initial controllers": (["--initial-controllers", VOTERS], 3, False, VOTERS, None, {}, []),
    "initial controllers without itself": (["--initial-controllers", VOTERS], 9, False, VOTERS, None, {}, []),
    "no initial controllers": (["--no-initial-controllers"], 3, False, None, None, {}, []),
    "static voters": ([], 3, True, None, None, {}, []),
    "an old release": (["--release-version", "3.9"], 3, True, None, "3.9", {}, []),
    "features and SCRAM": (
        ["--feature", "transaction.version=0", "--feature", "share.version=1", "--add-scram", SCRAM],
        3, True, None, None, {"transaction.version": 0, "share.version": 1}, [SCRAM],
    ),
}  # fmt: skip


def controller_with(home: Path, node_id: int, *, static: bool) -> Controller:
    port = free_port()
    quorum = (
        {"controller.quorum.voters": f"{node_id}@localhost:{port}"}
        if static
        else {"controller.quorum.bootstrap.servers": f"localhost:{port}"}
    )
    home.mkdir(parents=True, exist_ok=True)
    return Controller("apache", node_id, home, port, quorum)


@pytest.mark.parametrize("name", FORMATS)
def test_format_writes_what_kafkas_storage_tool_writes(name: str, tmp_path: Path) -> None:
    arguments, node_id, static, voters, release, features, scram = FORMATS[name]
    theirs = controller_with(tmp_path / "theirs", node_id, static=static)
    theirs.format(CLUSTER, *arguments)

    level = None if release is None else parse_version(release)
    levels = format_levels(features, level, dynamic_quorum=not static)
    credentials = [VersionedRecord(parse_scram(argument, bytes), 0) for argument in scram]
    ours = controller_with(tmp_path / "ours", node_id, static=static)
    plan = FormatPlan(
        node_id=node_id,
        cluster_id=CLUSTER,
        directories=(str(ours.data),),
        metadata_directory=str(ours.data),
        controller_listener="CONTROLLER",
        records=tuple(bootstrap_records(levels, credentials)),
        kraft_version=levels["kraft.version"],
        initial_voters=None if voters is None else tuple(parse_voters(voters)),
    )
    format_directories(DISK, plan, new_uuid=new_uuid, now_ms=1795233650000)

    def files(node: Controller) -> list[str]:
        return sorted(str(path.relative_to(node.data)) for path in node.data.rglob("*") if path.is_file())

    assert files(ours) == files(theirs)
    for path in files(theirs):
        if path.endswith(".checkpoint"):
            assert records_of(f"{ours.data}/{path}") == records_of(f"{theirs.data}/{path}")
    mine, kafkas = (read_meta_properties(DISK, str(node.data)) for node in (ours, theirs))
    assert mine is not None
    assert kafkas is not None
    if voters is None or node_id == 9:
        mine, kafkas = (each._replace(directory_id=None) for each in (mine, kafkas))
    assert mine == kafkas
    text = (ours.data / "meta.properties").read_text().splitlines()
    assert [line.partition("=")[0] for line in text if "=" in line] == [
        line.partition("=")[0]
        for line in (theirs.data / "meta.properties").read_text().splitlines()
        if "=" in line
    ]
    assert "Found problem" not in tools().run("storage", "info", "-c", ours.properties_file).out


def test_every_release_is_formatted_as_kafkas_storage_tool_formats_it(tmp_path: Path) -> None:
    for level in range(MINIMUM_VERSION, LATEST_PRODUCTION + 1):
        theirs = controller_with(tmp_path / f"theirs-{level}", 3, static=True)
        theirs.format(CLUSTER, "--release-version", version_name(level))
        plan = FormatPlan(
            node_id=3,
            cluster_id=CLUSTER,
            directories=(f"{tmp_path}/ours-{level}",),
            metadata_directory=f"{tmp_path}/ours-{level}",
            controller_listener="CONTROLLER",
            records=tuple(bootstrap_records(format_levels({}, level, dynamic_quorum=False))),
            kraft_version=0,
            initial_voters=None,
        )
        format_directories(DISK, plan, new_uuid=new_uuid, now_ms=1795233650000)
        name = "bootstrap.checkpoint"
        assert records_of(f"{plan.metadata_directory}/{name}") == records_of(f"{theirs.data}/{name}")


def test_kafkas_controller_runs_on_kraftds_directory_and_kraftd_reopens_it(
    tmp_path: Path,
) -> None:
    node = controller_with(tmp_path / "node", 3, static=False)
    levels = format_levels({}, None, dynamic_quorum=True)
    plan = FormatPlan(
        node_id=3,
        cluster_id=CLUSTER,
        directories=(str(node.data),),
        metadata_directory=str(node.data),
        controller_listener="CONTROLLER",
        records=tuple(bootstrap_records(levels)),
        kraft_version=1,
        initial_voters=tuple(parse_voters(f"3@localhost:{node.port}:J8aAPcfLQt2bqs1JT_rMgQ")),
    )
    format_directories(DISK, plan, new_uuid=new_uuid, now_ms=1795233650000)
    for end in (node.stop, node.kill):
        node.start()
        node.wait_ready()
        end()
        copy = tmp_path / f"copy-{end.__name__}"
        shutil.copytree(node.data, copy)
        directory = open_directory(DISK, str(copy), 3, new_directory_id=new_uuid, now_ms=0)
        log, report, *_ = open_log(DISK, directory.partition_path)
        assert report.truncated_bytes == 0
        assert log.log_end > 5
        assert log.snapshots == [BOOTSTRAP_ID]
        state_file = copy / "__cluster_metadata-0" / "quorum-state"
        state = QuorumStateFile(DISK, directory.partition_path).read()
        assert state is not None
        assert encode_quorum_state(state, 1) == state_file.read_bytes()
        for path in find_dumpable(DISK, [str(copy)]):
            assert list(verify(DISK, path)) == []
        # Kafka's controller continues after the records appended here.
        no_op = encode_record(VersionedRecord(NoOpRecord(), 0))
        log.append(build_batch([no_op], log.log_end, log.last_epoch, 1795233650000))
        # It ignores the high watermark and the copies of truncated records beside the log.
        log.append(build_batch([no_op], log.log_end, log.last_epoch, 1795233650000))
        log.truncate_to(log.log_end - 1)
        mark = Mark(log.log_end, log.last_epoch)
        HighWatermarkFile(DISK, directory.partition_path, Mark()).write(mark)
        # It ignores the mark of a new voter in quorum-state.
        QuorumStateFile(DISK, directory.partition_path).write(state, 1, is_new=True)
        log.close()
        directory.close()
        shutil.rmtree(node.data)
        shutil.copytree(copy, node.data)
    node.start()
    node.wait_ready()
    node.stop()
    opened = open_log(DISK, f"{node.data}/__cluster_metadata-0")
    assert (opened.mark, len(opened.log.kept.names())) == (mark, 2)
    assert not QuorumStateFile(DISK, f"{node.data}/__cluster_metadata-0").marks_new_voter()


def test_kafkas_controller_refuses_a_directory_locked_by_kraftd(tmp_path: Path) -> None:
    node = controller_with(tmp_path / "node", 3, static=True)
    node.format(CLUSTER)
    directory = open_directory(DISK, str(node.data), 3, new_directory_id=new_uuid, now_ms=0)
    node.start()
    node.wait(lambda: "Failed to acquire lock" in node.log_text(), "refuses the locked directory")
    node.kill()
    directory.close()
    node.start()
    node.wait_ready()
    with pytest.raises(DirectoryLocked):
        open_directory(DISK, str(node.data), 3, new_directory_id=new_uuid, now_ms=0)
    node.stop()


def test_kafkas_dump_log_and_index_check_read_kraftds_segments(tmp_path: Path) -> None:
    partition = f"{tmp_path}/__cluster_metadata-0"
    log = open_log(DISK, partition, LogSettings(segment_bytes=60_000)).log
    message = LeaderChangeMessage(
        leader_id=3, voters=[Voter(voter_id=3)], granting_voters=[Voter(voter_id=3)]
    )
    log.append(build_control_batch([(ControlRecordType.LEADER_CHANGE, message, 0)], 0, 1, 1000))
    while log.log_end < 4000:
        names = [f"topic-{log.log_end + at}" for at in range(7)]
        topics = [encode_record(VersionedRecord(TopicRecord(name, new_uuid()), 0)) for name in names]
        log.append(build_batch(topics, log.log_end, 1, 1000 + log.log_end))
    log.close()
    segments = sorted(Path(partition).glob("*.log"))
    assert len(segments) > 2
    # A copy of truncated records is read as a segment is.
    log = open_log(DISK, partition, LogSettings(segment_bytes=60_000)).log
    end = log.log_end
    log.append(build_batch(topics, end, 1, 1000))
    log.truncate_to(end)
    log.sync()
    assert log.last_truncation is not None
    log.close()
    files = ",".join(map(str, [*segments, log.last_truncation.path]))
    out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", files).check().out
    records = [json.loads(line.partition("payload: ")[2]) for line in out.splitlines() if "payload: " in line]
    assert [record["data"]["name"] for record in records] == [
        *(f"topic-{at}" for at in range(1, end)),
        *names,
    ]
    assert "LeaderChange" in out
    assert "isvalid: false" not in out
    indexes = ",".join(map(str, sorted(Path(partition).glob("*index"))))
    run = tools().run("dump-log", "--index-sanity-check", "--files", indexes).check()
    assert re.findall("mismatch|orrupt|rror|non-consecutive", run.out + run.err) == []
    assert run.out.count("passed sanity check") == 2 * len(segments)


def test_kafkas_dump_log_and_metadata_shell_read_kraftds_checkpoint(tmp_path: Path) -> None:
    partition = f"{tmp_path}/__cluster_metadata-0"
    snapshot_id = OffsetAndEpoch(100, 3)
    writer = CheckpointWriter(
        DISK,
        partition,
        snapshot_id,
        last_contained_log_timestamp_ms=7,
        now_ms=8,
        kraft_version=1,
        max_batch_bytes=900,
    )
    levels = format_levels({}, None, dynamic_quorum=True)
    records = bootstrap_records(levels)
    records += [
        VersionedRecord(TopicRecord(f"topic-{at}", bytes(15) + bytes([at + 10])), 0) for at in range(50)
    ]
    writer.append([encode_record(record) for record in records])
    size = writer.freeze()
    path = checkpoint_path(partition, snapshot_id)
    assert Path(path).stat().st_size == size
    assert Path(path).stat().st_mode & 0o222 == 0
    out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", path).check().out
    assert out.count("TOPIC_RECORD") == 50
    assert "SnapshotHeader" in out
    assert "SnapshotFooter" in out
    topics = {f"topic-{at}" for at in range(50)}
    metadata_shell(path, tmp_path, "ls", "/image/topics/byName", expected=lambda words: topics == set(words))
    reader = CheckpointReader(DISK, path)
    assert (reader.header.last_contained_log_timestamp_ms, reader.header.kraft_version) == (7, 1)
    assert [decode_record(value) for batch in reader.batches() for value in values(batch)] == records
    reader.close()
