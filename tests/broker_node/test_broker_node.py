"""A broker beside a controller, without a loop: real nodes, core, image, log and codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.answers.effects import StopRequested
from kraftd.broker_node.lifecycle import CONTROLLER_RETRY_MS, BrokerState
from kraftd.host.executors.broker_executor import NoControllerNotified
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata.features import format_levels
from kraftd.replica.effects import ReadCommitted
from kraftd.replica.events import CommittedRead
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import AT, IDS, BrokerHarness


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    return BrokerHarness(tmp_path).run()


def test_a_broker_of_the_process_registers_and_is_seen_in_metadata(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    assert harness.broker.lifecycle.state is BrokerState.RUNNING
    registered = harness.node.image.brokers[100]
    assert not registered.fenced and registered.epoch == harness.broker.lifecycle.broker_epoch
    answer = harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None))
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(100, AT.host, AT.port)]


def test_fenced_brokers_name_themselves_lest_clients_forget_all_nodes(harness: BrokerHarness) -> None:
    """librdkafka never asks again after an answer with topics and without nodes."""
    harness.create_topic("t")
    harness.wire.is_cut_off = True
    harness.pass_time(20_000)
    assert harness.node.image.brokers[100].fenced
    answer = harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None))
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(100, AT.host, AT.port)]
    assert (answer.controller_id, answer.topics[0].partitions[0].leader_id) == (-1, -1)
    assert harness.client_ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest()).brokers == []


def test_a_broker_registers_as_soon_as_the_controller_of_its_process_is_active(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path)
    harness.executor.start()
    harness.start()
    harness.pass_time(CONTROLLER_RETRY_MS - 1)
    assert harness.broker.lifecycle.state is BrokerState.RUNNING
    assert len([one for one in harness.wire.sent if isinstance(one, BrokerRegistrationRequest)]) == 1


def test_the_metadata_log_is_no_topic_of_a_broker(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    assert harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None)).topics == []
    named = MetadataRequest([MetadataRequestTopic(bytes(16), METADATA_TOPIC)])
    (topic,) = harness.client_ask(ApiKey.METADATA, 12, named).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_heartbeat_reports_committed_metadata_only(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    harness.sync_by_itself = False
    harness.wire.is_cut_off = True
    harness.create("t")
    assert harness.view.applied_end_offset > harness.view.high_watermark
    harness.pass_time(2_000)
    assert harness.wire.sent[-1].current_metadata_offset == harness.view.high_watermark - 1


def test_a_broker_that_stops_is_fenced_before_it_has_ended(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    harness.broker_step(StopRequested())
    harness.pass_time(200)
    assert harness.broker.has_ended and harness.node.image.brokers[100].fenced


class OldHarness(BrokerHarness):
    """The cluster begins with a metadata.version before directories: 3.6-IV2."""

    def _levels(self) -> dict[str, int]:
        return format_levels({}, 14, dynamic_quorum=True)


def test_a_broker_registers_again_once_its_directories_are_allowed__kip858(
    tmp_path: Path,
) -> None:
    harness = OldHarness(tmp_path).run()
    before = harness.node.image.brokers[100]
    assert before.directories == () and not before.fenced
    update = FeatureUpdateKey("metadata.version", 19, False, 1)
    answer = harness.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(60_000, [update]))
    assert answer.error_code == 0
    sent = len(harness.wire.sent)
    harness.pass_time(100)
    after = harness.node.image.brokers[100]
    assert after.directories == IDS
    assert (after.epoch, after.fenced) == (before.epoch, False)
    kinds = [type(one) for one in harness.wire.sent[sent:]]
    assert kinds.count(BrokerRegistrationRequest) == 1


def test_a_broker_without_a_controller_ends_the_process(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path)
    harness.wire.is_cut_off = True
    harness.run()
    harness.pass_time(58_900)
    assert not harness.failures
    harness.pass_time(1_000)
    assert isinstance(harness.failures[0], NoControllerNotified) and harness.broker.has_ended


class SlowHarness(BrokerHarness):
    """The metadata log is not read before `read_on`."""

    def __init__(self, tmp_path: Path, disk: MemoryDisk) -> None:
        self.unread: list[Any] | None = []
        super().__init__(tmp_path, disk)

    def _perform(self, made: list[Any]) -> None:
        if self.unread is not None:
            self.unread += [effect for effect in made if isinstance(effect, ReadCommitted)]
            made = [effect for effect in made if not isinstance(effect, ReadCommitted)]
        super()._perform(made)

    def read_on(self) -> None:
        unread, self.unread = self.unread, None
        for effect in unread or ():
            data = self.storage.log.read(effect.offset, effect.max_bytes, effect.end_offset)
            self.step(CommittedRead(effect.offset, data))


def test_a_broker_does_not_give_up_while_its_own_controller_reads_the_log(tmp_path: Path) -> None:
    """As Kafka's, which starts the broker of a process after that; very many partitions take long."""
    first = BrokerHarness(tmp_path).run()
    first.create_topic("t", 3)
    first.storage.close()
    harness = SlowHarness(tmp_path, disk=first.disk)
    harness.clock.ms = first.clock.ms
    harness.wire.is_cut_off = True
    harness.run()
    harness.pass_time(70_000)
    assert not harness.view.is_loaded and not harness.failures
    harness.read_on()
    harness.pass_time(58_000)
    assert harness.view.is_loaded and not harness.failures
    harness.pass_time(2_100)
    assert isinstance(harness.failures[0], NoControllerNotified)


def test_a_broker_lists_only_apis_that_it_serves(harness: BrokerHarness) -> None:
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    listed = {one.api_key for one in answer.api_keys}
    assert {ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS, ApiKey.CREATE_TOPICS} <= listed
    assert listed == harness.broker.boundary.registry.routes.keys()


def test_telemetry_is_left_out_as_without_a_reporter_for_clients__kip714(harness: BrokerHarness) -> None:
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    listed = {one.api_key for one in answer.api_keys}
    assert not listed & {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def test_a_killed_broker_answers_again_once_it_is_registered_and_unfenced(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    """Until then the metadata shows its former run, as if it served, and then for a moment no broker."""
    harness.pass_time(100)
    harness.executor.close_files()
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms
    after.wire.is_cut_off = True
    after.run()
    assert after.view.is_loaded and not after.node.image.brokers[100].fenced
    slot = after.client_send(ApiKey.METADATA, 12, MetadataRequest(None))
    after.pass_time(1_000)
    assert after.response(slot) is None
    after.wire.is_cut_off = False
    after.pass_time(30_000)
    assert [one.node_id for one in after.response(slot).brokers] == [100]


def test_fetch_before_version_7_has_no_session_and_the_others_are_counted__kip227(
    harness: BrokerHarness,
) -> None:
    for version, count in ((6, 0), (7, 1)):
        request = harness.fetch_request("t", {0: 0}, max_wait_ms=0, session_epoch=0)
        answer = harness.client_ask(ApiKey.FETCH, version, request)
        assert (answer.session_id > 0) is bool(count)
        cache = harness.broker.session_cache
        assert (len(cache), cache.partitions) == (count, count)
