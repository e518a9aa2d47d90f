"""A whole controller without a loop: real node, core, image, log and codecs, on a disk in memory."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path
from typing import Any

from kraftd.config import load
from kraftd.controller_node import effects, events
from kraftd.ground.event import DeadlineReached
from kraftd.host.storage import open_storage
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.metadata.features import bootstrap_records, format_levels, supported_features
from kraftd.metadata_dir.formatting.format import FormatPlan, format_directories
from kraftd.metadata_dir.formatting.voters import InitialVoter
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.replica.effects import MetadataLoaded, ReadCommitted
from kraftd.replica.events import CommittedRead
from kraftd.requests.effects import (
    Answer,
    AnswerRecords,
    AuditLine,
    CloseConnection,
    LogLine,
    MuteConnection,
    ReadFrame,
    ScheduleSlice,
)
from kraftd.requests.events import FramesReceived, SliceDue
from kraftd.runtime.assembly import build_node
from kraftd.types import METADATA_TOPIC_ID, Endpoint
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.frames import encode_request, parse_response

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
DIRECTORY = "/data"
START_MS = 1_800_000_000_000
PROPERTIES = """
process.roles=controller
node.id=100
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.bootstrap.servers=127.0.0.1:9093
log.dirs=/data
"""
# The texts of a node's log lines, which operators search for, and their levels.
LINES = {
    **dict.fromkeys(("leader is known", "no leader", "active controller", "registered"), "info"),
    **dict.fromkeys(("broker registered", "broker unfenced", "broker fenced"), "info"),
    **dict.fromkeys(("broker shutting down", "broker unregistered"), "info"),
    **dict.fromkeys(("topics created", "topics deleted", "partitions added", "configs changed"), "info"),
    **dict.fromkeys(("ACLs changed", "SCRAM credentials changed", "quotas changed"), "info"),
    **dict.fromkeys(("delegation tokens changed", "feature changed", "controller registered"), "info"),
    **dict.fromkeys(("authorization denied", "the disk has room again: writes go on"), "info"),
    "authorization allowed": "debug",
    **dict.fromkeys(("no longer the active controller", "a node is refused"), "warning"),
    "the wall clock stepped: record timestamps and token expiry follow it, timeouts do not": "warning",
    **dict.fromkeys(("a replica is ahead of this quorum", "a replica went back"), "warning"),
    "an observer holds less than it had fetched": "info",
    "a node runs more than once": "warning",
    "a client reads __cluster_metadata where it may learn of brokers": "warning",
    "a replica's log parts from this one: it must drop records": "info",
    **dict.fromkeys(("another process runs under this node's id", "a periodic task failed"), "error"),
    **dict.fromkeys(("this node could not register", "a fetch session failed and was closed"), "error"),
    **dict.fromkeys(("a request failed", "a request could not be read"), "error"),
    **dict.fromkeys(("an answer could not be written", "a refusal could not be written"), "error"),
    "changes could not be logged or audited": "error",
    "the disk is full: no writes until there is room": "error",
}


class SeededRandomness:
    """Reproducible randomness."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def uuid(self) -> bytes:
        return b"\x40" + self._random.randbytes(15)


class ManualClock:
    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def wall_ahead_ms(self) -> int:
        return 0


class Harness:
    """A controller and the host that performs its effects.

    With `sync_by_itself` False a sync ends only when the test calls `sync()`, so it can check what waits for
    the sync. An exception in a handler fails the test unless `may_fail` is set, as the answer is only a code.
    """

    seed = 1

    def __init__(self, tmp_path: Path, disk: MemoryDisk | None = None, **settings: Any) -> None:
        path = tmp_path / "controller.properties"
        extra = "".join(f"{key.replace('__', '.')}={value}\n" for key, value in settings.items())
        path.write_text(PROPERTIES + extra)
        self.config = load(path)
        self.disk = disk or MemoryDisk()
        self.rng = SeededRandomness(self.seed)
        self.clock = ManualClock()
        if disk is None:
            self._format()
        self.storage = open_storage(self.disk, self.config, self.clock.ms, self.rng.uuid)
        bound = [Endpoint("CONTROLLER", "127.0.0.1", 9093)]
        self.node = build_node(self.config, self.storage, self.rng, self.clock, bound)  # type: ignore[arg-type]
        self.sync_by_itself = True
        self.flushes_by_itself = True
        self.runs_slices_by_itself = True
        self.may_fail = False
        self.pending_syncs = 0
        self.answers: dict[tuple[int, int], bytes] = {}
        self.closed: dict[int, str] = {}
        self.muted: dict[int, int] = {}  # milliseconds by connection
        self.logged_texts: list[str] = []
        self.lines: list[LogLine] = []  # of the nodes themselves, without those of effects
        self.audited: list[AuditLine] = []
        self.events: deque[Any] = deque()
        self._requests: dict[tuple[int, int], tuple[int, int]] = {}
        self._slots: dict[int, int] = {}

    def _levels(self) -> dict[str, int]:
        return format_levels({}, None, dynamic_quorum=True)

    def _format(self) -> None:
        levels = self._levels()
        voter = InitialVoter(100, "127.0.0.1", 9093, self.rng.uuid())
        records = tuple(bootstrap_records(levels, ()))
        plan = FormatPlan(
            100, CLUSTER_ID, (DIRECTORY,), DIRECTORY, "CONTROLLER", records, levels["kraft.version"], (voter,)
        )
        format_directories(self.disk, plan, new_uuid=self.rng.uuid, now_ms=self.clock.ms)

    def start(self) -> Harness:
        self.step(raft_events.Started())
        return self

    # -- driving

    def step(self, event: Any) -> None:
        self.events.append(event)
        while self.events:
            self._perform(self.node.step(self.events.popleft(), self.clock.ms))

    def one_step(self, event: Any) -> None:
        """Take one step and perform none of its effects."""
        self._perform(self.node.step(event, self.clock.ms))

    def _perform(self, made: list[Any]) -> None:
        for effect in made:
            match effect:
                case Answer():
                    self.answers[effect.connection_id, effect.slot] = b"".join(effect.parts)
                case AnswerRecords():
                    log = self.storage.log
                    found = [log.read(one.offset, one.max_bytes, one.end_offset) for one in effect.reads]
                    call = effect.call
                    self.answers[call.connection_id, call.slot] = b"".join(effect.fill(found))
                case CloseConnection():
                    self.closed[effect.connection_id] = effect.reason
                case MuteConnection():
                    self.muted[effect.connection_id] = effect.for_ms
                case AuditLine():
                    self.audited.append(effect)
                case LogLine():
                    self.keep_line(effect)
                case ScheduleSlice():
                    if self.runs_slices_by_itself:
                        self.events.append(SliceDue())
                case ReadFrame():
                    self.events.append(effect.read())
                case effects.ScheduleFlush():
                    if self.flushes_by_itself:
                        self.events.append(events.FlushDue())
                case ReadCommitted():
                    data = self.storage.log.read(effect.offset, effect.max_bytes, effect.end_offset)
                    self.events.append(CommittedRead(effect.offset, data))
                case raft_effects.AppendRecords():
                    self.storage.log.append(effect.data)
                case raft_effects.SyncLog():
                    if self.sync_by_itself:
                        self.events.append(raft_events.RecordsSynced(self.storage.log.sync()))
                    else:
                        self.pending_syncs += 1
                case raft_effects.PersistElection():
                    self.storage.persist_election(effect.state, effect.version)
                case effects.ControllerActivated() | raft_effects.ShutdownCompleted():
                    self.logged_texts.append(type(effect).__name__)
                case MetadataLoaded():
                    pass
                case _:
                    raise AssertionError(f"an unknown effect: {effect!r}")

    def keep_line(self, line: LogLine) -> None:
        """Keep a log line, which must be a known one, or raise the exception that it reports."""
        failure = line.fields.get("exc_info")
        if isinstance(failure, Exception) and not self.may_fail:
            raise failure
        assert LINES.get(line.text) == line.level, line
        self.logged_texts.append(line.text)
        self.lines.append(line)

    def sync(self) -> None:
        """End one sync."""
        self.pending_syncs -= 1
        self.step(raft_events.RecordsSynced(self.storage.log.sync()))

    def advance(self, ms: int) -> None:
        """Let time pass and run every deadline on the way."""
        end_ms = self.clock.ms + ms
        while (due_ms := self.node.deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.ms = max(self.clock.ms, due_ms)
            self.step(DeadlineReached())
        self.clock.ms = end_ms

    # -- requests

    def send(self, key: int, version: int, request: Any, connection_id: int = 1) -> tuple[int, int]:
        frame = b"".join(encode_request(key, version, 77, "test", request))
        return self.send_frame(frame[4:], connection_id, key, version)

    def send_frame(
        self, frame: bytes, connection_id: int = 1, key: int = -1, version: int = 0
    ) -> tuple[int, int]:
        slot = self._slots.get(connection_id, 0)
        self._slots[connection_id] = slot + 1
        self._requests[connection_id, slot] = (key, version)
        self.step(FramesReceived(connection_id, slot, [memoryview(frame)], "CONTROLLER", "127.0.0.1"))
        return connection_id, slot

    def answer(self, place: tuple[int, int]) -> Any:
        """The decoded answer in a slot; None if it has not been sent yet."""
        raw = self.answers.get(place)
        if raw is None:
            return None
        key, version = self._requests[place]
        header, message = parse_response(key, response_version(key, version), raw[4:])
        assert header.correlation_id == 77
        return message

    def ask(self, key: int, version: int, request: Any, connection_id: int = 1) -> Any:
        return self.answer(self.send(key, version, request, connection_id))

    # -- brokers

    def registration(
        self, broker_id: int = 1, incarnation: int = 1, **fields: Any
    ) -> BrokerRegistrationRequest:
        values = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": bytes(15) + bytes([incarnation]),
            "listeners": [Listener("PLAINTEXT", "127.0.0.1", 9092 + broker_id)],
            "features": [Feature(name, *levels) for name, levels in supported_features().items()],
            "log_dirs": (bytes(14) + bytes([1, broker_id]),),
            **fields,
        }
        return BrokerRegistrationRequest(**values)

    def register(self, broker_id: int = 1, incarnation: int = 1, **fields: Any) -> Any:
        request = self.registration(broker_id, incarnation, **fields)
        return self.ask(ApiKey.BROKER_REGISTRATION, 4, request)

    def beat(self, broker_id: int, broker_epoch: int, **fields: Any) -> Any:
        request = BrokerHeartbeatRequest(broker_id, broker_epoch, **fields)
        return self.ask(ApiKey.BROKER_HEARTBEAT, 1, request)

    def intrude(self, incarnation: int) -> tuple[int, int]:
        """Send the registration of another process under this controller's id."""
        ours = self.node.registration.request()
        ours.incarnation_id = bytes(15) + bytes([incarnation])
        return self.send(ApiKey.CONTROLLER_REGISTRATION, 0, ours, connection_id=2)

    def unfenced(self, broker_id: int = 1) -> int:
        """Register and unfence a broker; return its broker epoch."""
        epoch = self.register(broker_id).broker_epoch
        assert not self.beat(broker_id, epoch, current_metadata_offset=epoch).is_fenced
        return int(epoch)

    def create(self, *names: str, partitions: int = 1, connection_id: int = 1) -> tuple[int, int]:
        topics = [CreatableTopic(name, partitions, 1) for name in names]
        return self.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 30_000), connection_id)

    def fetch(self, offset: int, high_watermark: int = -1, connection_id: int = 9) -> tuple[int, int]:
        epoch = self.node.core.epoch
        partition = FetchPartition(
            0, epoch, offset, epoch if offset else 0, -1, 0, high_watermark=high_watermark
        )
        request = FetchRequest(
            cluster_id=CLUSTER_ID,
            replica_state=ReplicaState(1, -1),
            max_wait_ms=500,
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )
        return self.send(ApiKey.FETCH, 18, request, connection_id)

    def api_versions(self, version: int = 4) -> ApiVersionsResponse:
        from kraftd.messages.api_versions_request import ApiVersionsRequest

        answer = self.ask(ApiKey.API_VERSIONS, version, ApiVersionsRequest("test", "1"), 99)
        assert isinstance(answer, ApiVersionsResponse)
        return answer
