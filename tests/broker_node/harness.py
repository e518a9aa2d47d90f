"""A whole broker without a loop: a real node, its executor, and its logs on a disk in memory."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.lifecycle import Broker
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.broker_node.routes import broker_registry
from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.resources import ResourceType
from kraftd.host.broker_logs.broker_logs import Schedules
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.broker_executor import BrokerExecutor
from kraftd.host.ports import Ports
from kraftd.log.data.resources import LogResources
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.metadata.features import supported_features
from kraftd.metadata.replica_changes import ReplicaChanges
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AuditLine, LogLine
from kraftd.requests.events import CallHandedOver, FramesReceived
from kraftd.types import Endpoint
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.records import build_records_batch
from kraftd.wire.table import api_key
from tests.controller_node.harness import CLUSTER_ID, START_MS, Harness, ManualClock

AT = Endpoint("PLAINTEXT", "127.0.0.1", 9092)
PATHS = ("/data", "/data-2")
IDS = (b"\x41" * 16, b"\x42" * 16)
SCHEDULES = Schedules(1_000, 60_000, 5_000, 300_000, 60_000)
CONNECTION = 50


def records(count: int = 1, *, timestamp_ms: int | None = None, **header: int) -> bytearray:
    """One batch."""
    at_ms = START_MS if timestamp_ms is None else timestamp_ms
    return build_records_batch([(at_ms + n, None, b"v%d" % n, ()) for n in range(count)], **header)


def reassign(harness: BrokerHarness, *replicas: int) -> None:
    """Move partition 0 of t to these brokers."""
    topic = ReassignableTopic("t", [ReassignablePartition(0, replicas)])
    answer = harness.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(30_000, True, [topic]), 8
    )
    assert not answer.error_code and not answer.responses[0].partitions[0].error_code, answer
    harness.pass_time(1_000)


class Planned:
    def __init__(self, act: Callable[[], object]) -> None:
        self.act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self.act = None


class ManualTimer:
    """The clock of the harness; `run_soon` runs the callbacks that are due now."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: deque[Callable[[], object]] = deque()
        self._later: list[tuple[int, int, Planned]] = []
        self._count = 0

    def now_ms(self) -> int:
        return self._clock.ms

    def wall_ahead_ms(self) -> int:
        return 0

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> None:
        self._soon.append(lambda: action(*arguments))

    def call_at(self, at_ms: int, action: Callable[..., object], *arguments: Any) -> Planned:
        planned = Planned(lambda: action(*arguments))
        self._count += 1
        heapq.heappush(self._later, (at_ms, self._count, planned))
        return planned

    def due_ms(self) -> int | None:
        return self._later[0][0] if self._later else None

    def run_due(self) -> None:
        while self._later and self._later[0][0] <= self._clock.ms:
            planned = heapq.heappop(self._later)[2]
            if planned.act is not None:
                planned.act()

    def run_soon(self) -> None:
        while self._soon:
            self._soon.popleft()()


class SoonThreads:
    """Threads whose work is done in a later callback."""

    def __init__(self, timer: ManualTimer) -> None:
        self._timer = timer
        self.held: list[Callable[[], None]] | None = None  # a list: work waits there

    def run(self, work: Callable[[], Any], done: Callable[[Any], Any], failed: Callable[[Any], Any]) -> None:
        def do() -> None:
            try:
                result = work()
            except Exception as error:
                self._timer.call_soon(failed, error)
            else:
                self._timer.call_soon(done, result)

        if self.held is not None:
            self.held.append(do)
        else:
            self._timer.call_soon(do)


class NoThread:
    def run(self, job: Any) -> None:
        raise AssertionError(f"{job!r} of a broker")


class Lines:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, dict[str, Any]]] = []

    def keep(self, level: str, text: str, fields: dict[str, Any]) -> None:
        if isinstance(fields.get("exc_info"), Exception):
            raise fields["exc_info"]
        self.all.append((level, text, fields))

    def debug(self, text: str, **fields: Any) -> None:
        self.keep("debug", text, fields)

    def info(self, text: str, **fields: Any) -> None:
        self.keep("info", text, fields)

    def warning(self, text: str, **fields: Any) -> None:
        self.keep("warning", text, fields)

    def error(self, text: str, **fields: Any) -> None:
        self.keep("error", text, fields)

    def texts(self) -> list[str]:
        return [text for _, text, _ in self.all]


class Wire:
    """The broker's connections, and its way to the controller of the process.

    `is_cut_off`: the controller answers nothing.
    """

    def __init__(self, harness: BrokerHarness) -> None:
        self._harness = harness
        self.responses: dict[int, bytes] = {}  # by slot
        self.closed: dict[int, str] = {}
        self.flushed: set[int] = set()  # the slots that were answered at the last flush
        self.mutes: list[bool] = []
        self.is_cut_off = False
        self.sent: list[Any] = []  # to the controller
        self.channels: dict[type, str] = {}  # of the last of each kind
        self.to_brokers: list[SendToNode] = []  # which the test answers
        self.events: list[AuditLine] = []

    def is_open(self, connection_id: int) -> bool:
        return connection_id not in self.closed

    def answer(self, effect: Answer) -> None:
        self._keep(effect.slot, effect.parts)

    def respond(self, call: Call, parts: list[Any]) -> None:
        self._keep(call.slot, parts)

    def flush(self) -> None:
        self.flushed = set(self.responses)

    def _keep(self, slot: int, parts: list[Any]) -> None:
        assert slot not in self.responses, f"slot {slot} is answered twice"
        self.responses[slot] = b"".join(parts)

    def close(self, connection_id: int, reason: str) -> None:
        if connection_id not in self.closed:
            self.closed[connection_id] = reason
            self._harness.timer.call_soon(self._harness.executor.connection_lost, connection_id)

    def mute(self, connection_id: int, is_muted: bool) -> None:
        self.mutes.append(is_muted)

    def line(self, effect: LogLine) -> None:
        self._harness.broker_lines.keep(effect.level, effect.text, effect.fields)

    def audited(self, effect: AuditLine) -> None:
        self.events.append(effect)

    def hand_over(self, call: Call) -> None:
        self._harness.timer.call_soon(self._harness.step, CallHandedOver(call))

    def send_to_node(self, effect: SendToNode) -> None:
        harness, message, answer = self._harness, effect.message, None
        if effect.listener:
            self.to_brokers.append(effect)
            return
        self.sent.append(message)
        self.channels[type(message)] = effect.channel
        if not self.is_cut_off:
            key = api_key(message)
            answer = harness.ask(key, valid_versions(key)[1], message, 7)
        harness.timer.call_soon(harness.executor.step, Answered(effect.request_id, answer))


class BrokerHarness(Harness):
    """A controller, and the broker of the same process. `failures` would have ended it."""

    def __init__(
        self,
        tmp_path: Path,
        disk: MemoryDisk | None = None,
        broker: dict[str, str] | None = None,
        **controller: Any,
    ) -> None:
        super().__init__(tmp_path, disk, **controller)
        self.node.image.replica_changes = ReplicaChanges(100)
        self.view = NodeView(self.node, self.storage)
        self.timer = ManualTimer(self.clock)
        self.threads = SoonThreads(self.timer)
        self.broker_lines = Lines()
        self.failures: list[BaseException] = []
        self.wire = Wire(self)
        self.asked: dict[int, tuple[int, int]] = {}  # API and version by slot
        self._marks = self.view.marks()
        self._make_broker(NodeConfig(broker or {}))

    def _make_broker(self, static: NodeConfig) -> None:
        configs = TopicConfigs(static, 100, self.view.context)
        settings = ClientSettings({AT.listener: AT}, serves_metadata_topic=False)
        identity = Broker(100, CLUSTER_ID, self.rng.uuid(), (AT,), IDS, supported_features())
        self.broker = BrokerNode(
            self.view, settings, broker_registry, identity, static, lambda: self.rng.below(1 << 30) + 1, str
        )
        for path in PATHS:
            self.disk.make_directory(path)
        self.directories = LogDirectories(
            LogResources(self.disk),
            [LogDirectory(path, id) for path, id in zip(PATHS, IDS, strict=True)],
            lambda topic: configs.of(topic).log,
        )

        def producers_of(topic: str, partition: int) -> ReplayedProducers:
            return ReplayedProducers(configs.of(topic).partition, self.clock.ms)

        self.executor = BrokerExecutor(
            self.broker,
            self.view,
            self.storage.log,
            self.directories,
            LogLoader(self.directories, self.clock.ms, producers_of),
            SCHEDULES,
            self.disk,
            Ports(self.timer, NoThread(), NoThread(), self.threads, self.broker_lines, self.failures.append),
            self.wire,
            lambda: self.rng.uuid().hex(),
        )

    # -- driving

    def run(self) -> BrokerHarness:
        """Start both, until the broker serves."""
        self.start()
        self.executor.start()
        self.pass_time(100)
        return self

    def step(self, event: Any) -> None:
        super().step(event)
        if self.view.marks() != self._marks:
            self._marks = self.view.marks()
            self.timer.call_soon(self.executor.poll)

    def broker_step(self, event: Any) -> None:
        self.executor.step(event)
        self.timer.run_soon()

    def pass_time(self, ms: int) -> None:
        end_ms = self.clock.ms + ms
        self.timer.run_soon()
        while (due_ms := self.timer.due_ms()) is not None and due_ms <= end_ms:
            self.advance(max(0, due_ms - self.clock.ms))
            self.timer.run_due()
            self.timer.run_soon()
        self.advance(end_ms - self.clock.ms)
        self.timer.run_soon()

    def set_broker_config(self, key: str, value: str) -> None:
        """Set a dynamic config of all brokers."""
        change = AlterConfigsResource(ResourceType.BROKER, "", [AlterableConfig(key, 0, value)])
        answer = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]), 9)
        assert not answer.responses[0].error_code, answer
        self.pass_time(10)

    # -- clients

    def send_frame_to_broker(self, frames: list[bytes], connection_id: int = CONNECTION) -> int:
        """Requests that arrive together; returns the slot of the first."""
        slot = len(self.asked)
        for n in range(len(frames)):
            self.asked[slot + n] = (-1, 0)
        views = [memoryview(frame) for frame in frames]
        self.broker_step(FramesReceived(connection_id, slot, views, AT.listener, "127.0.0.1"))
        return slot

    def client_send(
        self, key: int, version: int, *requests: Any, connection_id: int = CONNECTION, client_id: str = "test"
    ) -> int:
        """Send requests in one go; returns the slot of the first."""
        frames = [b"".join(encode_request(key, version, 1, client_id, one))[4:] for one in requests]
        slot = self.send_frame_to_broker(frames, connection_id)
        for n in range(len(frames)):
            self.asked[slot + n] = (key, version)
        return slot

    def response(self, slot: int) -> Any:
        """The decoded answer; None while there is none, or if it is empty."""
        raw = self.wire.responses.get(slot) or self.answers.get((CONNECTION, slot))  # or the controller's
        return parse_response(*self.asked[slot], memoryview(raw)[4:])[1] if raw else None

    def client_ask(self, key: int, version: int, request: Any, **how: Any) -> Any:
        found = self.response(self.client_send(key, version, request, **how))
        assert found is not None, "no answer"
        return found

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        configurations = [CreatableTopicConfig(key.replace("_", "."), text) for key, text in configs.items()]
        topic = CreatableTopic(name, partitions, 1, configs=configurations)
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 30_000), 8)
        assert not answer.topics[0].error_code, answer
        self.pass_time(10)

    def delete_topic(self, name: str) -> None:
        answer = self.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest([], (name,), 30_000), 8)
        assert not answer.responses[0].error_code, answer
        self.pass_time(10)

    def produce_request(
        self, topic: str, parts: dict[int, Any], acks: int = 1, timeout_ms: int = 1_000
    ) -> ProduceRequest:
        data = [PartitionProduceData(index, batch) for index, batch in parts.items()]
        return ProduceRequest(None, acks, timeout_ms, [TopicProduceData(topic, partition_data=data)])

    def produce(self, topic: str, batch: Any, index: int = 0, acks: int = 1, version: int = 12) -> Any:
        """Produce to one partition; returns its part of the answer."""
        request = self.produce_request(topic, {index: batch}, acks)
        answer = self.client_ask(ApiKey.PRODUCE, version, request)
        return answer.responses[0].partition_responses[0]

    def fetch_request(self, topic: str, offsets: dict[int, int], **fields: Any) -> FetchRequest:
        parts = [
            FetchPartition(index, -1, offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()
        ]
        values: dict[str, Any] = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 25,
            "session_epoch": -1,
        }
        return FetchRequest(**(values | fields), topics=[FetchTopic(topic, partitions=parts)])

    def read(self, topic: str, offset: int = 0, index: int = 0, **fields: Any) -> Any:
        """Fetch from one partition at once; returns its part of the answer."""
        request = self.fetch_request(topic, {index: offset}, **({"max_wait_ms": 0} | fields))
        return self.client_ask(ApiKey.FETCH, 12, request).responses[0].partitions[0]
