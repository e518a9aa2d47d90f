"""A leader's snapshot replaces the log: the node loads a new image from it, and sends snapshots to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node.effects import AnswerSnapshot
from kraftd.messages import fetch_snapshot_request as fetch_snapshot
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.raft import effects as raft_effects
from kraftd.replica.acl_publisher import AclPublisher
from kraftd.replica.effects import OpenSnapshot, ReadCommitted
from kraftd.replica.events import SnapshotOpened
from kraftd.requests.effects import ScheduleSlice
from kraftd.requests.events import FramesReceived
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.frames import encode_request, parse_response
from tests.controller_node.harness import CLUSTER_ID, Harness
from tests.controller_node.test_replicas_ahead import begin_with_a_snapshot

WANTED = OffsetAndEpoch(500, 3)
TOPIC_ID = bytes(15) + b"\7"
RUNS: list[list[Any]] = [
    [FeatureLevelRecord("metadata.version", 30)],
    [TopicRecord("a", TOPIC_ID), AccessControlEntryRecord(TOPIC_ID, 2, "a", 3, "User:alice", "*", 3, 3)],
]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A node that has not started."""
    return Harness(tmp_path)


def reset(harness: Harness) -> list[Any]:
    """The effects of the core's event that the log was replaced."""
    harness.node.core_answers._driver.perform([raft_effects.ResetLog(WANTED, 0, 2, 1)])
    return harness.node.outbox.take()


def test_a_replaced_log_begins_a_new_image_that_waits_for_the_snapshot(harness: Harness) -> None:
    before = harness.node.image
    assert reset(harness) == [raft_effects.ResetLog(WANTED, 0, 2, 1), OpenSnapshot(WANTED)]
    assert harness.node.image is not before is not harness.node.context.image
    assert harness.node.image is harness.node.following.replay.image
    assert harness.node.following.replay.loads_snapshot
    harness.node.following.read_on()
    assert harness.node.outbox.take() == []  # the log is read after the snapshot only


def test_the_opened_snapshot_becomes_the_image_and_its_time_is_counted(harness: Harness) -> None:
    reset(harness)
    loading = harness.node.following.load_progress
    loading.records = 40  # of an earlier image
    made = harness.node.step(SnapshotOpened(WANTED, iter(RUNS)), harness.clock.ms)
    assert not any(isinstance(one, ReadCommitted | ScheduleSlice) for one in made)
    image = harness.node.image
    assert (image.offset, image.epoch) == (499, 3)
    assert image.topics[TOPIC_ID].name == "a"
    assert harness.node.following.replay.next_offset == 500
    assert (loading.records, loading.snapshots, loading.snapshot_records) == (43, 1, 3)
    assert loading.snapshot_times.count == 1


def test_the_acls_of_the_snapshot_replace_those_before(harness: Harness) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    harness.node.following._acls = AclPublisher(authorizer)
    reset(harness)
    harness.node.step(SnapshotOpened(WANTED, iter(RUNS)), harness.clock.ms)
    harness.node.following.publish(500)
    assert authorizer.loaded
    assert len(harness.node.image.acls) == 1


def test_a_piece_of_a_snapshot_is_read_and_filled_into_its_answer__kip630(harness: Harness) -> None:
    harness.start()
    begin_with_a_snapshot(harness)
    (snapshot,) = harness.node.core.log.snapshots
    wanted = fetch_snapshot.SnapshotId(snapshot.offset, snapshot.epoch)
    partition = fetch_snapshot.PartitionSnapshot(0, harness.node.core.epoch, wanted, 60)
    topics = [fetch_snapshot.TopicSnapshot(METADATA_TOPIC, [partition])]
    request = fetch_snapshot.FetchSnapshotRequest(CLUSTER_ID, 7, 100, topics)
    frame = b"".join(encode_request(ApiKey.FETCH_SNAPSHOT, 1, 5, "c", request))[4:]
    made = harness.node.step(FramesReceived(3, 0, [memoryview(frame)], "CONTROLLER", "h"), harness.clock.ms)
    (effect,) = (one for one in made if isinstance(one, AnswerSnapshot))
    assert (effect.call.connection_id, effect.snapshot_id, effect.position) == (3, snapshot, 60)
    assert effect.max_bytes == 100
    whole = b"".join(effect.fill(b"piece"))
    version = response_version(ApiKey.FETCH_SNAPSHOT, 1)
    answer: Any = parse_response(ApiKey.FETCH_SNAPSHOT, version, whole[4:])[1]
    (filled,) = answer.topics[0].partitions
    assert (filled.position, bytes(filled.unaligned_records)) == (60, b"piece")
    assert filled.snapshot_id.end_offset == snapshot.offset
