"""A replica that has applied records that this quorum lost is reported until it follows the quorum's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.cli.doctor.judge_quorum import judge_refused
from kraftd.controller_node import core_answers
from kraftd.controller_node.watching import replicas_ahead
from kraftd.controller_node.watching.replicas_ahead import (
    BROKER_REMEDY,
    CONTROLLER_REMEDY,
    PARTS,
    UNKNOWN,
    UNKNOWN_REMEDY,
)
from kraftd.host.snapshots.checkpointing import MADE, CheckpointOrder, make_checkpoint
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.metrics.state.health import health
from kraftd.raft.events import LogStartMoved, SnapshotTaken
from kraftd.raft.quorum.voters import VoterSet
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch, uuid_text
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import CLUSTER_ID, START_MS, Harness
from tests.metrics.watched import readings

AHEAD = "a replica is ahead of this quorum"
TWINS = "a node runs more than once"
DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def fetch(
    harness: Harness,
    offset: int,
    high_watermark: int,
    node_id: int = 7,
    version: int = 18,
    directory: bytes = b"d" * 16,
    connection: int = 1,
) -> None:
    """Send the Fetch of a replica whose log ends in the leader's epoch."""
    epoch = harness.node.core.epoch
    partition = FetchPartition(
        0, epoch, offset, epoch, replica_directory_id=directory, high_watermark=high_watermark
    )
    topics = [FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])]
    request = FetchRequest(CLUSTER_ID, replica_state=ReplicaState(node_id), topics=topics)
    if version < 15:
        request.replica_id, request.replica_state = node_id, ReplicaState()
    harness.send(ApiKey.FETCH, version, request, connection)


def reported(harness: Harness) -> list[str]:
    """The replicas in DescribeQuorum's answer, which must be the same as in /readyz."""
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    assert answer.error_code == 0
    lines = (answer.error_message or "").splitlines()
    answers = harness.node.core_answers
    now_ms = harness.clock.ms
    found = readings(
        harness,
        ahead=answers.replicas_ahead(),
        went_back=answers.went_back(now_ms),
        duplicate_ids=answers.duplicate_ids(now_ms),
    )
    assert [*health(found).ahead, *health(found).went_back, *health(found).twins] == lines
    return lines


@pytest.mark.parametrize(("version", "beyond", "count"), [(18, 5, 1), (18, 0, 0), (17, 5, 0)])
def test_a_replica_that_has_applied_lost_records_is_reported(
    harness: Harness, version: int, beyond: int, count: int
) -> None:
    end = harness.node.core.log_end_offset
    for _ in range(3):
        fetch(harness, end + 7, end + beyond, version=version)
    found = [one.fields for one in harness.audited if one.event == "replica ahead"]
    assert [(one["from_node"], one["seen"]) for one in found] == [(7, 1)] * count
    assert harness.logged_texts.count(AHEAD) == count
    assert len(reported(harness)) == count
    if count:
        assert (found[0]["same_before"], found[0]["its_high_watermark"]) == (end, end + beyond)
        assert "delete its __cluster_metadata-0" in found[0]["remedy"]
        (warned,) = judge_refused(reported(harness), "node 100")
        assert warned.text.startswith("node 7 at ") and str(end + beyond) in warned.text
        assert "delete its __cluster_metadata-0" in warned.remedy


def test_only_the_directory_of_a_broker_that_is_ahead_may_be_deleted(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = harness.node.core.log_end_offset
    voters = VoterSet.from_static("CONTROLLER", {7: ("n7", 9093), 100: ("n100", 9093)})
    monkeypatch.setattr(type(harness.node.core), "voters", voters)
    image = harness.node.image  # 9 is a former voter: a recovered quorum knows it by its registration alone
    monkeypatch.setattr(image, "controllers", {**image.controllers, 9: object()})
    monkeypatch.setattr(image, "brokers", {8: object(), 9: object()})
    for node_id in (7, 8, 9, 10):
        fetch(harness, end + 7, end + 5, node_id=node_id, connection=node_id)
    remedies = [CONTROLLER_REMEDY, BROKER_REMEDY, CONTROLLER_REMEDY, UNKNOWN_REMEDY]
    found = {one.fields["from_node"]: one.fields for one in harness.audited if one.event == "replica ahead"}
    assert [found[node_id]["remedy"] for node_id in (7, 8, 9, 10)] == remedies
    lines = harness.node.core_answers.replicas_ahead()
    assert all(line.endswith(remedy) for line, remedy in zip(lines, remedies, strict=True))


@pytest.mark.parametrize(("high_watermark", "version"), [(-1, 18), (0, 18), (UNKNOWN, 17)])
def test_a_replica_that_must_drop_records_is_logged(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, high_watermark: int, version: int
) -> None:
    end, epoch = harness.node.core.log_end_offset, harness.node.core.epoch
    fetch(harness, end, -1)
    for _ in range(3):
        fetch(harness, end + 7, high_watermark, node_id=8, version=version)
    (line,) = (one for one in harness.lines if one.text == PARTS)
    assert line.fields == {
        "from_node": 8,
        "host": "127.0.0.1",
        "same_before": end,
        "its_log_end": end + 7,
        "its_epoch": epoch,
        "seen": 1,
    }
    assert reported(harness) == [] and harness.audited[-1].event != "replica ahead"


@pytest.mark.parametrize(("beyond", "count"), [(0, 0), (1, 1)])
def test_a_broker_before_4_1_is_reported_by_the_offset_of_its_heartbeats(
    harness: Harness, beyond: int, count: int
) -> None:
    end = harness.node.core.log_end_offset
    for _ in range(3):
        heartbeat = BrokerHeartbeatRequest(7, 5, end - 1 + beyond)
        assert harness.ask(ApiKey.BROKER_HEARTBEAT, 1, heartbeat).error_code
        fetch(harness, end + 7, -1, version=17)
    lines = reported(harness)
    assert len(lines) == harness.logged_texts.count(AHEAD) == count
    if count:
        assert f"their logs part at offset {end}, and it has applied the records before {end + 1}" in lines[0]
        assert lines[0].endswith(BROKER_REMEDY)
    fetch(harness, end, -1, version=17)
    assert reported(harness) == []


@pytest.mark.parametrize("behind", [1, 0], ids=["answered with a record", "answered as all without news"])
def test_a_replica_is_reported_as_ahead_until_it_follows_this_log(harness: Harness, behind: int) -> None:
    end = harness.node.core.log_end_offset
    fetch(harness, end + 7, end + 7)
    fetch(harness, end, -1, node_id=8)
    assert [line.split(" at ")[0] for line in reported(harness)] == ["node 7"]
    fetch(harness, end - behind, -1)
    assert reported(harness) == []
    assert harness.logged_texts.count(AHEAD) == 1


def test_a_line_and_an_event_name_the_replica_its_client_and_both_logs(harness: Harness) -> None:
    end = harness.node.core.log_end_offset
    fetch(harness, end + 7, end + 5)
    (event,) = (one for one in harness.audited if one.event == "replica ahead")
    (line,) = (one for one in harness.lines if one.text == AHEAD)
    assert (line.level, line.fields, event.offset) == ("warning", event.fields, -1)
    assert event.fields == {
        "from_node": 7,
        "host": "127.0.0.1",
        "client_id": "test",
        "principal": "User:ANONYMOUS",
        "same_before": end,
        "its_high_watermark": end + 5,
        "its_log_end": end + 7,
        "remedy": UNKNOWN_REMEDY,
        "seen": 1,
    }


def test_a_replica_ahead_of_the_snapshot_that_it_needs_is_reported(harness: Harness) -> None:
    begin_with_a_snapshot(harness)
    (snapshot,) = harness.node.core.log.snapshots
    fetch(harness, snapshot.offset - 1, snapshot.offset - 1)
    assert reported(harness) == []
    fetch(harness, snapshot.offset - 1, snapshot.offset + 1)
    assert len(reported(harness)) == 1


def begin_with_a_snapshot(harness: Harness) -> None:
    """Let the log begin where a snapshot ends."""
    log, end = harness.storage.log, harness.node.core.high_watermark
    position = log.position_near(0)
    order = CheckpointOrder(directory=log.directory, end_offset=end, epoch=1, base=None, position=position)
    made = make_checkpoint(harness.disk, order, START_MS)
    assert made.outcome == MADE
    taken = OffsetAndEpoch(end, 1)
    log.add_snapshot(taken)
    harness.step(SnapshotTaken(taken, made.size_bytes))
    assert log.delete_before_snapshot(taken)
    harness.step(LogStartMoved(end))


def test_two_directories_under_one_id_are_reported_while_both_fetch(harness: Harness) -> None:
    end = harness.node.core.high_watermark
    for directory in (b"a" * 16, b"b" * 16):
        fetch(harness, end, -1, directory=directory)
    fetch(harness, end, -1, node_id=8)
    (line,) = reported(harness)
    assert line.startswith("node 7 runs more than once")
    assert line.rpartition("; ")[2].startswith("give one of them an id of its own")
    harness.clock.ms += 2_000
    fetch(harness, end, -1, directory=b"a" * 16)
    harness.clock.ms += 2_000
    fetch(harness, end, -1, directory=b"a" * 16)
    assert reported(harness) == []


@pytest.fixture
def static(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """A leader whose core does not know the directory ids of other voters, as in a static quorum."""
    monkeypatch.setattr(core_answers, "duplicate_ids", lambda *_: {})
    return harness


def test_twins_of_a_static_quorum_are_reported_while_fetches_alternate(static: Harness) -> None:
    end = static.node.core.high_watermark
    for _ in range(4):
        for directory in (b"a" * 16, b"b" * 16):
            fetch(static, end, -1, directory=directory)
    fetch(static, end + 7, -1, directory=b"a" * 16)  # whether it follows or not
    (line,) = reported(static)
    assert line.startswith(f"node 7 runs more than once, from the directories {uuid_text(b'b' * 16)} (at ")
    assert static.logged_texts.count(TWINS) == 1
    static.clock.ms += 4_000
    assert reported(static) == []


def test_a_replaced_disk_and_a_restart_are_no_twins(static: Harness) -> None:
    end = static.node.core.high_watermark
    for directory in (b"a" * 16, b"a" * 16, b"b" * 16, b"b" * 16, bytes(16), b"b" * 16):
        fetch(static, end, -1, directory=directory)
    fetch(static, end, -1, node_id=8, directory=b"a" * 16)
    static.clock.ms += 4_000
    fetch(static, end, -1, directory=b"a" * 16)  # the old disk, put back
    assert reported(static) == []
    assert TWINS not in static.logged_texts


@pytest.mark.parametrize(
    ("version", "directory", "shown"), [(18, b"d" * 16, uuid_text(b"d" * 16)), (14, bytes(16), "unknown")]
)
def test_twins_with_copies_of_a_directory_are_found_by_their_connections(
    harness: Harness, version: int, directory: bytes, shown: str
) -> None:
    end = harness.node.core.high_watermark
    for _ in range(3):
        for connection in (2, 3):
            fetch(harness, end, -1, version=version, directory=directory, connection=connection)
            harness.clock.ms += 400
    (line,) = reported(harness)
    assert line.startswith(f"node 7 runs more than once, from the directories {shown}")
    assert line.count("(at 127.0.0.1)") == 2 and ", copies of one; give one of them an id" in line
    assert harness.logged_texts.count(TWINS) == 1
    harness.clock.ms += 4_000
    assert reported(harness) == []


@pytest.mark.parametrize(
    "connections",
    [
        (2, 3, 4, 5, 6, 7),  # it reconnects, again and again
        (2, 2, 3, 2, 2, 2, 3, 3, 2),  # it asks a bootstrap server, and then the leader again
    ],
)
@pytest.mark.parametrize("every_ms", [100, 500])
def test_a_node_that_reconnects_or_asks_a_bootstrap_server_is_no_twin(
    harness: Harness, connections: tuple[int, ...], every_ms: int
) -> None:
    end = harness.node.core.high_watermark
    for connection in connections:
        fetch(harness, end, -1, connection=connection)
        harness.clock.ms += every_ms
    assert reported(harness) == []
    assert TWINS not in harness.logged_texts


def test_replicas_ahead_are_listed_in_the_order_of_their_last_fetches(harness: Harness) -> None:
    end = harness.node.core.log_end_offset
    for node_id in (7, 8, 7):
        fetch(harness, end + 7, end + 5, node_id=node_id)
    assert [line.split(" at ")[0] for line in reported(harness)] == ["node 8", "node 7"]
    assert harness.logged_texts.count(AHEAD) == 2  # each has its own line


def test_an_unknown_high_watermark_is_not_ahead__kip1166(harness: Harness) -> None:
    end = harness.node.core.log_end_offset
    fetch(harness, end + 7, UNKNOWN)
    assert reported(harness) == []
    fetch(harness, end + 7, UNKNOWN - 1)
    assert len(reported(harness)) == 1


def test_the_number_of_remembered_replicas_ahead_is_bounded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas_ahead, "MAX_PEERS", 2)
    end = harness.node.core.log_end_offset
    for node_id in (7, 8, 9):
        fetch(harness, end + 7, end + 5, node_id=node_id)
    assert [line.split(" at ")[0] for line in reported(harness)] == ["node 8", "node 9"]
