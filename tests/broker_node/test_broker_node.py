"""A broker beside a controller, without a loop: real nodes, core, image, log and codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.answers.effects import Answered, MetadataMoved, NodeStarted, SendToNode, StopRequested
from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.effects import NotRegistered
from kraftd.broker_node.events import LogsLoaded
from kraftd.broker_node.lifecycle import Broker, BrokerState
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.routes import broker_registry
from kraftd.configdef.node import NodeConfig
from kraftd.ground.event import DeadlineReached
from kraftd.host.cluster_view import NodeView
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.metadata.features import supported_features
from kraftd.requests.effects import Answer, LogLine, ScheduleSlice
from kraftd.requests.events import FramesReceived, SliceDue
from kraftd.types import METADATA_TOPIC, Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from tests.controller_node.harness import CLUSTER_ID, Harness

AT = Endpoint("PLAINTEXT", "127.0.0.1", 9092)


class BrokerHarness(Harness):
    """A controller, and the broker of the same process."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.view = NodeView(self.node, self.storage)
        broker = Broker(100, CLUSTER_ID, bytes(15) + b"\x05", (AT,), (b"\x40" * 16,), supported_features())
        settings = ClientSettings({AT.listener: AT}, serves_metadata_topic=False)
        self.broker = BrokerNode(
            self.view, settings, broker_registry, broker, NodeConfig(), lambda: 1, lambda: "u"
        )
        self.responses: dict[int, bytes] = {}
        self.is_cut_off = False
        self.ended = False
        self._marks = self.view.marks()

    def step(self, event: Any) -> None:
        super().step(event)
        if self.view.marks() != self._marks:
            self._marks = self.view.marks()
            self.broker_step(MetadataMoved())

    def broker_step(self, event: Any) -> None:
        self._broker_step(event)
        if isinstance(event, NodeStarted):
            self._broker_step(LogsLoaded())  # there are none

    def _broker_step(self, event: Any) -> None:
        for effect in self.broker.step(event, self.clock.ms):
            match effect:
                case SendToNode():
                    is_first = isinstance(effect.message, BrokerRegistrationRequest)
                    at = (ApiKey.BROKER_REGISTRATION, 4) if is_first else (ApiKey.BROKER_HEARTBEAT, 2)
                    answer = None if self.is_cut_off else self.ask(*at, effect.message, 7)
                    self.broker_step(Answered(effect.request_id, answer))
                case Answer():
                    self.responses[effect.slot] = b"".join(effect.parts)
                case ScheduleSlice():
                    self.broker_step(SliceDue())
                case NotRegistered():
                    self.ended = True
                case LogLine():
                    pass
                case _:
                    raise AssertionError(f"an effect that is not performed here: {effect!r}")

    def pass_time(self, ms: int) -> None:
        end_ms = self.clock.ms + ms
        while (due_ms := self.broker.deadline_ms()) is not None and due_ms <= end_ms:
            self.advance(max(0, due_ms - self.clock.ms))
            self.broker_step(DeadlineReached())
        self.advance(end_ms - self.clock.ms)

    def client_ask(self, key: int, version: int, request: Any) -> Any:
        slot = len(self.responses)
        frame = b"".join(encode_request(key, version, 1, "test", request))[4:]
        self.broker_step(FramesReceived(50, slot, [memoryview(frame)], AT.listener, "127.0.0.1"))
        return parse_response(key, version, memoryview(self.responses[slot])[4:])[1]


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path)
    harness.start()
    harness.broker_step(NodeStarted())
    return harness


def test_a_broker_of_the_process_registers_and_is_seen_in_metadata(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    assert harness.broker.lifecycle.state is BrokerState.RUNNING
    registered = harness.node.image.brokers[100]
    assert not registered.fenced and registered.epoch == harness.broker.lifecycle.broker_epoch
    answer = harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None))
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(100, AT.host, AT.port)]


def test_the_metadata_log_is_no_topic_of_a_broker(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    assert harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None)).topics == []
    named = MetadataRequest([MetadataRequestTopic(bytes(16), METADATA_TOPIC)])
    (topic,) = harness.client_ask(ApiKey.METADATA, 12, named).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_that_stops_is_fenced_before_it_has_ended(harness: BrokerHarness) -> None:
    harness.pass_time(100)
    harness.broker_step(StopRequested())
    harness.pass_time(200)
    assert harness.broker.has_ended and harness.node.image.brokers[100].fenced


def test_a_broker_without_a_controller_ends_the_process(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path)
    harness.start()
    harness.is_cut_off = True
    harness.broker_step(NodeStarted())
    harness.pass_time(59_000)
    assert not harness.ended
    harness.pass_time(1_000)
    assert harness.ended and harness.broker.has_ended


def test_a_broker_lists_only_apis_that_it_serves(harness: BrokerHarness) -> None:
    answer = harness.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    listed = {one.api_key for one in answer.api_keys}
    assert {ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS, ApiKey.CREATE_TOPICS} <= listed
    assert listed == harness.broker.boundary.registry.routes.keys()
