"""The node: requests in, decisions on the log, answers after commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node import events
from kraftd.controller_node.registration import UNTIL_SEEN_MS
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.raft import events as raft_events
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path).start()


def test_an_empty_log_gets_the_bootstrap_records_and_the_node_registers_itself(house: House) -> None:
    image = house.node.image
    assert house.node.active
    assert image.features["metadata.version"] == 30
    assert not image.in_transaction
    assert image.controllers[100].incarnation_id == house.node.identity.incarnation_id
    assert house.node.core.high_watermark == house.storage.log.synced_end == image.offset + 1


def test_a_broker_registers_sends_heartbeats_and_is_unfenced(house: House) -> None:
    epoch = house.unfenced(1)
    assert not house.node.image.brokers[1].fenced
    assert house.node.image.brokers[1].epoch == epoch
    assert [line for line in house.logged_texts if "broker" in line] == [
        "broker registered",
        "broker unfenced",
    ]


def test_no_answer_is_given_before_its_records_are_synced(house: House) -> None:
    house.unfenced()
    house.sync_by_itself = False
    place = house.create("a")
    assert house.answer(place) is None
    assert house.node.image.topic_named("a") is not None
    house.sync()
    assert house.answer(place).topics[0].error_code == ErrorCode.NONE


def test_only_committed_records_are_logged(house: House) -> None:
    house.unfenced()
    house.sync_by_itself = False
    house.create("kept")
    assert "topics created" not in house.logged_texts
    house.sync()
    assert house.logged_texts.count("topics created") == 1
    house.create("lost")
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    house.sync()
    assert house.logged_texts.count("topics created") == 1


def test_an_active_controller_registers_again_if_another_incarnation_did(house: House) -> None:
    mine = house.node.identity.incarnation_id
    house.sync_by_itself = False
    place = house.intrude(1)
    assert house.node.image.controllers[100].incarnation_id != mine
    house.sync_by_itself = True
    house.sync()
    assert house.answer(place).error_code == ErrorCode.NONE
    assert house.node.image.controllers[100].incarnation_id == mine


def test_two_processes_of_one_id_do_not_fill_the_log_with_registrations(house: House) -> None:
    mine = house.node.identity.incarnation_id
    before = house.storage.log.log_end
    for number in range(10):
        house.intrude(number)
    assert house.storage.log.log_end == before + 11
    assert house.node.image.controllers[100].incarnation_id != mine
    house.advance(UNTIL_SEEN_MS)
    assert house.node.image.controllers[100].incarnation_id == mine


def test_a_read_waits_for_the_commit_of_pending_records(house: House) -> None:
    house.unfenced()
    house.sync_by_itself = False
    house.create("a")
    read = house.send(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None), 2
    )
    assert house.answer(read) is None
    house.sync()
    assert house.answer(read).error_code == ErrorCode.NONE


def test_a_read_waits_for_records_of_periodic_tasks_too(house: House) -> None:
    house.unfenced()
    house.sync_by_itself = False
    house.advance(20_000)  # a silent broker is fenced: that may be undone
    assert house.node.image.brokers[1].fenced and house.syncs_asked
    read = house.send(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None), 2
    )
    assert house.answer(read) is None
    house.sync()
    assert house.answer(read).error_code == ErrorCode.NONE


def test_a_heartbeat_waits_only_for_records_of_its_own_broker(house: House) -> None:
    epoch = house.unfenced(1)
    house.sync_by_itself = False
    house.create("a")
    heartbeat = BrokerHeartbeatRequest(1, epoch, current_metadata_offset=house.storage.log.log_end)
    others = house.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 2)
    assert house.answer(others).is_fenced is False
    heartbeat.want_fence = True
    fenced = house.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 3)
    again = house.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 4)  # changes nothing any more
    assert house.answer(fenced) is None and house.answer(again) is None
    house.sync()
    assert house.answer(fenced).is_fenced is True and house.answer(again).is_fenced is True
    heartbeat.want_fence = False
    freed = house.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 5)
    again = house.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 6)
    assert house.answer(freed) is None and house.answer(again) is None
    house.sync()
    assert house.answer(freed).is_fenced is False and house.answer(again).is_fenced is False


def test_a_read_is_answered_at_once_when_nothing_is_uncommitted(house: House) -> None:
    house.sync_by_itself = False
    answer = house.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None))
    assert answer.error_code == ErrorCode.NONE


def test_many_appends_share_one_sync(house: House) -> None:
    house.unfenced()
    house.sync_by_itself = False
    places = [house.create(f"t{i}", connection_id=i) for i in range(10)]
    assert house.syncs_asked == 1
    house.sync()
    assert house.syncs_asked == 0
    assert all(house.answer(place) is not None for place in places)


def test_a_restart_replays_the_log_into_an_equal_image(house: House, tmp_path: Path) -> None:
    house.unfenced()
    house.create("a", "b", partitions=3)
    before = house.node.image
    house.storage.close()
    again = House(tmp_path, disk=house.disk)
    again.start()
    assert again.node.active
    assert again.node.core.epoch > house.node.core.epoch
    assert again.node.image.topics == before.topics
    assert again.node.image.brokers == before.brokers


def test_requests_are_answered_while_the_log_is_being_replayed(house: House, tmp_path: Path) -> None:
    house.unfenced()
    for i in range(3):
        house.create(*(f"t{i}-{j}" for j in range(400)))
    house.storage.close()
    again = House(tmp_path, disk=house.disk)
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
    again.step(raft_events.DeadlineReached())
    assert again.node.active
    assert again.node.image.topic_count == 1200
    assert again.answer(described).controller_id == 100


def test_a_silent_broker_is_fenced_after_its_session(house: House) -> None:
    house.unfenced()
    house.advance(9_000)
    assert not house.node.image.brokers[1].fenced
    house.advance(1)
    assert house.node.image.brokers[1].fenced
    assert "broker fenced" in house.logged_texts


def test_heartbeats_of_a_restarted_leader_start_with_a_whole_session(house: House, tmp_path: Path) -> None:
    house.unfenced()
    house.storage.close()
    again = House(tmp_path, disk=house.disk)
    again.clock.ms = house.clock.ms + 60_000
    again.start()
    again.advance(8_900)
    assert not again.node.image.brokers[1].fenced
    again.advance(2_000)
    assert again.node.image.brokers[1].fenced


def test_no_op_records_are_written_at_their_interval(house: House) -> None:
    before = house.storage.log.log_end
    house.advance(5_000)
    assert house.storage.log.log_end - before == 10


def test_without_an_interval_no_no_op_records_are_written(tmp_path: Path) -> None:
    house = House(tmp_path, metadata__max__idle__interval__ms=0).start()
    before = house.storage.log.log_end
    house.advance(5_000)
    assert house.storage.log.log_end == before


def test_a_parked_fetch_is_answered_by_the_next_append(house: House) -> None:
    end = house.storage.log.log_end
    place = house.fetch(end, high_watermark=house.node.core.high_watermark)
    assert house.answer(place) is None
    house.register(1)
    partition = house.answer(place).responses[0].partitions[0]
    assert partition.error_code == ErrorCode.NONE
    assert bytes(partition.records) == bytes(house.storage.log.read(end, 1 << 20))[: len(partition.records)]
    assert len(partition.records) > 0


def test_a_parked_fetch_is_answered_empty_when_its_time_is_up(tmp_path: Path) -> None:
    house = House(tmp_path, metadata__max__idle__interval__ms=0).start()
    place = house.fetch(house.storage.log.log_end, high_watermark=house.node.core.high_watermark)
    house.advance(499)
    assert house.answer(place) is None
    house.advance(1)
    assert not house.answer(place).responses[0].partitions[0].records


def test_parked_requests_of_a_lost_connection_are_dropped(house: House) -> None:
    place = house.fetch(house.storage.log.log_end, high_watermark=house.node.core.high_watermark)
    house.step(events.ConnectionClosed(place[0]))
    house.register(1)
    house.advance(1_000)
    assert house.answer(place) is None


def test_lost_leadership_refuses_waiting_calls_and_undoes_records(house: House) -> None:
    house.unfenced()
    house.create("kept")
    house.sync_by_itself = False
    place = house.create("lost")
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    assert house.answer(place).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert not house.node.active
    assert house.node.image.topic_named("lost") is None
    assert house.node.image.topic_named("kept") is not None
    assert house.answer(house.create("later")).topics[0].error_code == ErrorCode.NOT_CONTROLLER


def test_a_stale_broker_epoch_is_refused(house: House) -> None:
    epoch = house.unfenced()
    request = AllocateProducerIdsRequest(1, epoch + 1)
    assert house.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_finalized_features_are_visible_once_committed(house: House) -> None:
    answer = house.api_versions()
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert (levels["metadata.version"], levels["kraft.version"]) == (30, 1)
    # The offset of the bootstrap transaction's end, not of the records that committed together with it.
    assert answer.finalized_features_epoch == house.node.image.offset - 1


def test_a_shutdown_answers_waiting_requests(house: House) -> None:
    house.unfenced()
    parked = house.fetch(house.storage.log.log_end, high_watermark=house.node.core.high_watermark)
    house.node.stop()
    house.step(raft_events.ShutdownRequested(1_000))
    house.advance(1_000)
    assert "ShutdownCompleted" in house.logged_texts
    assert house.answer(parked) is not None


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
    house = House(tmp_path, controller__quorum__auto__join__enable="true", **settings)
    config = house.node.core._replica.config
    assert config.auto_join
    assert {name: getattr(config, name.replace("__", "_")) for name in keys} == keys
