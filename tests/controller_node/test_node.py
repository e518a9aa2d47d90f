"""The node: requests in, decisions on the log, answers after commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node.registration import UNTIL_SEEN_MS
from kraftd.ground.event import DeadlineReached
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.raft import events as raft_events
from kraftd.requests.events import ConnectionClosed
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def test_an_empty_log_gets_the_bootstrap_records_and_the_node_registers_itself(harness: Harness) -> None:
    image = harness.node.image
    assert harness.node.active
    assert image.features["metadata.version"] == 30
    assert not image.in_transaction
    assert image.controllers[100].incarnation_id == harness.node.identity.incarnation_id
    assert harness.node.core.high_watermark == harness.storage.log.synced_end == image.offset + 1


def test_a_broker_registers_sends_heartbeats_and_is_unfenced(harness: Harness) -> None:
    epoch = harness.unfenced(1)
    assert not harness.node.image.brokers[1].fenced
    assert harness.node.image.brokers[1].epoch == epoch
    assert [line for line in harness.logged_texts if "broker" in line] == [
        "broker registered",
        "broker unfenced",
    ]


def test_no_answer_is_given_before_its_records_are_synced(harness: Harness) -> None:
    harness.unfenced()
    harness.sync_by_itself = False
    place = harness.create("a")
    assert harness.answer(place) is None
    assert harness.node.image.topic_named("a") is not None
    harness.sync()
    assert harness.answer(place).topics[0].error_code == ErrorCode.NONE


def test_only_committed_records_are_logged(harness: Harness) -> None:
    harness.unfenced()
    harness.sync_by_itself = False
    harness.create("kept")
    assert "topics created" not in harness.logged_texts
    harness.sync()
    assert harness.logged_texts.count("topics created") == 1
    harness.create("lost")
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    harness.sync()
    assert harness.logged_texts.count("topics created") == 1


def test_an_active_controller_registers_again_if_another_incarnation_did(harness: Harness) -> None:
    mine = harness.node.identity.incarnation_id
    harness.sync_by_itself = False
    place = harness.intrude(1)
    assert harness.node.image.controllers[100].incarnation_id != mine
    harness.sync_by_itself = True
    harness.sync()
    assert harness.answer(place).error_code == ErrorCode.NONE
    assert harness.node.image.controllers[100].incarnation_id == mine


def test_two_processes_of_one_id_do_not_fill_the_log_with_registrations(harness: Harness) -> None:
    mine = harness.node.identity.incarnation_id
    before = harness.storage.log.log_end
    for number in range(10):
        harness.intrude(number)
    assert harness.storage.log.log_end == before + 11
    assert harness.node.image.controllers[100].incarnation_id != mine
    harness.advance(UNTIL_SEEN_MS)
    assert harness.node.image.controllers[100].incarnation_id == mine


def test_a_read_waits_for_the_commit_of_pending_records(harness: Harness) -> None:
    harness.unfenced()
    harness.sync_by_itself = False
    harness.create("a")
    read = harness.send(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None), 2
    )
    assert harness.answer(read) is None
    harness.sync()
    assert harness.answer(read).error_code == ErrorCode.NONE


def test_a_read_waits_for_records_of_periodic_tasks_too(harness: Harness) -> None:
    harness.unfenced()
    harness.sync_by_itself = False
    harness.advance(20_000)  # a silent broker is fenced: that may be undone
    assert harness.node.image.brokers[1].fenced and harness.pending_syncs
    read = harness.send(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None), 2
    )
    assert harness.answer(read) is None
    harness.sync()
    assert harness.answer(read).error_code == ErrorCode.NONE


def test_a_heartbeat_waits_only_for_records_of_its_own_broker(harness: Harness) -> None:
    epoch = harness.unfenced(1)
    harness.sync_by_itself = False
    harness.create("a")
    heartbeat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=harness.storage.log.log_end)
    others = harness.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 2)
    assert harness.answer(others).is_fenced is False
    heartbeat.want_fence = True
    fenced = harness.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 3)
    again = harness.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 4)  # changes nothing any more
    assert harness.answer(fenced) is None and harness.answer(again) is None
    harness.sync()
    assert harness.answer(fenced).is_fenced is True and harness.answer(again).is_fenced is True
    heartbeat.want_fence = False
    freed = harness.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 5)
    again = harness.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 6)
    assert harness.answer(freed) is None and harness.answer(again) is None
    harness.sync()
    assert harness.answer(freed).is_fenced is False and harness.answer(again).is_fenced is False


def test_a_read_is_answered_at_once_when_nothing_is_uncommitted(harness: Harness) -> None:
    harness.sync_by_itself = False
    answer = harness.ask(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None)
    )
    assert answer.error_code == ErrorCode.NONE


def test_many_appends_share_one_sync(harness: Harness) -> None:
    harness.unfenced()
    harness.sync_by_itself = False
    places = [harness.create(f"t{i}", connection_id=i) for i in range(10)]
    assert harness.pending_syncs == 1
    harness.sync()
    assert harness.pending_syncs == 0
    assert all(harness.answer(place) is not None for place in places)


def test_a_restart_replays_the_log_into_an_equal_image(harness: Harness, tmp_path: Path) -> None:
    harness.unfenced()
    harness.create("a", "b", partitions=3)
    before = harness.node.image
    harness.storage.close()
    again = Harness(tmp_path, disk=harness.disk)
    again.start()
    assert again.node.active
    assert again.node.core.epoch > harness.node.core.epoch
    assert again.node.image.topics == before.topics
    assert again.node.image.brokers == before.brokers


def test_requests_are_answered_while_the_log_is_being_replayed(harness: Harness, tmp_path: Path) -> None:
    harness.unfenced()
    for i in range(3):
        harness.create(*(f"t{i}-{j}" for j in range(400)))
    harness.storage.close()
    again = Harness(tmp_path, disk=harness.disk)
    again.events.append(raft_events.Started())
    while not again.node.following.replay.next_offset:
        again._perform(again.node.step(again.events.popleft(), again.clock.ms))
    waiting, again.events = again.events, type(again.events)()
    assert not again.node.active
    versions = again.api_versions()
    assert versions.finalized_features_epoch == -1
    assert [(f.name, f.max_version_level) for f in versions.finalized_features] == [
        ("kraft.version", 1),
        ("metadata.version", 7),
    ]
    refused = again.create("early")
    assert again.answer(refused).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    described = again.send(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2), 5)
    assert again.answer(described) is None
    again.events = waiting
    again.step(DeadlineReached())
    assert again.node.active
    assert again.node.image.topic_count == 1200
    assert again.answer(described).controller_id == 100


def test_a_silent_broker_is_fenced_after_its_session(harness: Harness) -> None:
    harness.unfenced()
    harness.advance(9_000)
    assert not harness.node.image.brokers[1].fenced
    harness.advance(1)
    assert harness.node.image.brokers[1].fenced
    assert "broker fenced" in harness.logged_texts


def test_heartbeats_of_a_restarted_leader_start_with_a_whole_session(
    harness: Harness, tmp_path: Path
) -> None:
    harness.unfenced()
    harness.storage.close()
    again = Harness(tmp_path, disk=harness.disk)
    again.clock.ms = harness.clock.ms + 60_000
    again.start()
    again.advance(8_900)
    assert not again.node.image.brokers[1].fenced
    again.advance(2_000)
    assert again.node.image.brokers[1].fenced


def test_no_op_records_are_written_at_their_interval(harness: Harness) -> None:
    before = harness.storage.log.log_end
    harness.advance(5_000)
    assert harness.storage.log.log_end - before == 10


def test_a_no_op_record_is_appended_in_the_callback_of_its_deadline(harness: Harness) -> None:
    before, harness.flushes_by_itself = harness.storage.log.log_end, False
    harness.advance(500)
    assert harness.storage.log.log_end == before + 1


def test_without_an_interval_no_no_op_records_are_written(tmp_path: Path) -> None:
    harness = Harness(tmp_path, metadata__max__idle__interval__ms=0).start()
    before = harness.storage.log.log_end
    harness.advance(5_000)
    assert harness.storage.log.log_end == before


def test_a_parked_fetch_is_answered_by_the_next_append(harness: Harness) -> None:
    end = harness.storage.log.log_end
    place = harness.fetch(end, high_watermark=harness.node.core.high_watermark)
    assert harness.answer(place) is None
    harness.register(1)
    partition = harness.answer(place).responses[0].partitions[0]
    assert partition.error_code == ErrorCode.NONE
    assert bytes(partition.records) == bytes(harness.storage.log.read(end, 1 << 20))[: len(partition.records)]
    assert len(partition.records) > 0


def test_a_parked_fetch_is_answered_empty_when_its_time_is_up(tmp_path: Path) -> None:
    harness = Harness(tmp_path, metadata__max__idle__interval__ms=0).start()
    place = harness.fetch(harness.storage.log.log_end, high_watermark=harness.node.core.high_watermark)
    harness.advance(499)
    assert harness.answer(place) is None
    harness.advance(1)
    assert not harness.answer(place).responses[0].partitions[0].records


def test_parked_requests_of_a_lost_connection_are_dropped(harness: Harness) -> None:
    place = harness.fetch(harness.storage.log.log_end, high_watermark=harness.node.core.high_watermark)
    harness.step(ConnectionClosed(place[0]))
    harness.register(1)
    harness.advance(1_000)
    assert harness.answer(place) is None


def test_lost_leadership_refuses_waiting_calls_and_undoes_records(harness: Harness) -> None:
    harness.unfenced()
    harness.create("kept")
    harness.sync_by_itself = False
    place = harness.create("lost")
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert harness.answer(place).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert not harness.node.active
    assert harness.node.image.topic_named("lost") is None
    assert harness.node.image.topic_named("kept") is not None
    assert harness.answer(harness.create("later")).topics[0].error_code == ErrorCode.NOT_CONTROLLER


def test_a_stale_broker_epoch_is_refused(harness: Harness) -> None:
    epoch = harness.unfenced()
    request = AllocateProducerIdsRequest(1, epoch + 1)
    assert harness.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_finalized_features_are_visible_once_committed(harness: Harness) -> None:
    answer = harness.api_versions()
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert (levels["metadata.version"], levels["kraft.version"]) == (30, 1)
    # The offset of the bootstrap transaction's end, not of the records that committed together with it.
    assert answer.finalized_features_epoch == harness.node.image.offset - 1


def test_a_shutdown_answers_waiting_requests(harness: Harness) -> None:
    harness.unfenced()
    parked = harness.fetch(harness.storage.log.log_end, high_watermark=harness.node.core.high_watermark)
    harness.node.stop()
    harness.step(raft_events.ShutdownRequested(1_000))
    harness.advance(1_000)
    assert "ShutdownCompleted" in harness.logged_texts
    assert harness.answer(parked) is not None


def test_every_setting_of_the_quorum_reaches_the_core(tmp_path: Path) -> None:
    keys = {
        "election__timeout__ms": 501,
        "election__backoff__max__ms": 502,
        "fetch__timeout__ms": 503,
        "request__timeout__ms": 504,
        "retry__backoff__ms": 505,
        "fetch__max__bytes": 506,
        "fetch__snapshot__max__bytes": 507,
    }
    settings = {f"controller__quorum__{name}": value for name, value in keys.items()}
    harness = Harness(tmp_path, controller__quorum__auto__join__enable="true", **settings)
    config = harness.node.core._replica.config
    assert config.auto_join
    assert {name: getattr(config, name.replace("__", "_")) for name in keys} == keys
