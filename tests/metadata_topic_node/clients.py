"""A controller with a client listener and no loop: real nodes, core, image and log on a memory disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.answers.effects import AnswersSent, HandToController, ImageReached, MetadataMoved, SendToNode
from kraftd.answers.settings import ClientSettings
from kraftd.fetch.session_cache import CacheLimits
from kraftd.ground.event import DeadlineReached
from kraftd.host.cluster_view import NodeView
from kraftd.log.timestamps import max_timestamp, offset_for_timestamp
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.metadata_topic_node import effects
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.metadata_topic_node.routes import client_registry
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
from kraftd.requests.events import (
    AnswerNotWritten,
    CallHandedOver,
    ConnectionClosed,
    FramesReceived,
    SliceDue,
)
from kraftd.security.authorizer import Authorizer
from kraftd.types import METADATA_TOPIC_ID, Endpoint
from kraftd.wire.frames import encode_request
from tests.controller_node.harness import Harness

CLIENT = "CLIENT"


class ClientHarness(Harness):
    """`sent_to_nodes` are the requests to other nodes; connections from 1000 on belong to clients."""

    def __init__(self, tmp_path: Path, authorizer: Authorizer | None = None, **settings: Any) -> None:
        super().__init__(tmp_path, **settings)
        self.view = NodeView(self.node, self.storage)
        endpoints = {CLIENT: Endpoint(CLIENT, "127.0.0.1", 9092)}
        self.clients = MetadataTopicNode(
            self.view,
            ClientSettings(endpoints, "PLAINTEXT", CacheLimits(slots=10)),
            client_registry,
            lambda: self.rng.below(1 << 30) + 1,
            authorizer,
        )
        self.sent_to_nodes: list[SendToNode] = []
        self.reads: list[AnswerRecords] = []
        self.muted_ms: dict[int, int] = {}  # by connection
        self.callbacks_run = 0
        self.client_id = "test"
        self._marks = self.view.marks()

    def step(self, event: Any) -> None:
        super().step(event)
        if self.view.marks() != self._marks:
            self._marks = self.view.marks()
            self.client_step(MetadataMoved())
        if self.clients.held.waits_for(self.view.applied_end_offset):
            self.client_step(ImageReached())

    def client_step(self, event: Any) -> None:
        self._perform_for_clients(event)
        while self.clients.wants_answers_sent:
            self._perform_for_clients(AnswersSent())

    def _perform_for_clients(self, event: Any) -> None:
        for effect in self.clients.step(event, self.clock.ms):
            match effect:
                case Answer():
                    self.answers[effect.connection_id, effect.slot] = b"".join(effect.parts)
                case AnswerRecords():
                    self.reads.append(effect)
                    self._fill(effect)
                case CloseConnection():
                    self.closed[effect.connection_id] = effect.reason
                case MuteConnection():
                    self.muted_ms[effect.connection_id] = effect.for_ms
                case ScheduleSlice():
                    self.callbacks_run += 1
                    self.client_step(SliceDue())
                case ReadFrame():
                    self.client_step(effect.read())
                case HandToController():
                    self.step(CallHandedOver(effect.call))
                case SendToNode():
                    self.sent_to_nodes.append(effect)
                case effects.LookUpTimes():
                    self._look_up(effect)
                case AuditLine():
                    self.audited.append(effect)
                case LogLine():
                    self.keep_line(effect)
                case _:
                    raise AssertionError(f"an effect that is not performed here: {effect!r}")

    def _fill(self, effect: AnswerRecords) -> None:
        log = self.storage.log
        data = [log.read(one.offset, one.max_bytes, one.end_offset) for one in effect.reads]
        call = effect.call
        try:
            parts = effect.fill(data)
        except Exception as error:
            self.step(AnswerNotWritten(call, error))
        else:
            self.answers[call.connection_id, call.slot] = b"".join(parts)

    def _look_up(self, effect: effects.LookUpTimes) -> None:
        log, end_offset = self.storage.log, effect.end_offset
        found: list[tuple[int, int] | None] = []
        for one in effect.times_ms:
            at = max_timestamp(log, end_offset) if one is None else offset_for_timestamp(log, one, end_offset)
            found.append(at)
        self.client_step(effects.TimesLookedUp(effect.call, found))

    def client_send(self, key: int, version: int, request: Any, connection_id: int = 1000) -> tuple[int, int]:
        frame = b"".join(encode_request(key, version, 77, self.client_id, request))[4:]
        return self.client_frame(frame, key, version, connection_id)

    def client_frame(
        self, frame: bytes, key: int, version: int, connection_id: int = 1000
    ) -> tuple[int, int]:
        slot = self._slots.get(connection_id, 0)
        self._slots[connection_id] = slot + 1
        self._requests[connection_id, slot] = (key, version)
        self.client_step(FramesReceived(connection_id, slot, [memoryview(frame)], CLIENT, "127.0.0.1"))
        return connection_id, slot

    def client_ask(self, key: int, version: int, request: Any, connection_id: int = 1000) -> Any:
        return self.answer(self.client_send(key, version, request, connection_id))

    def client_closed(self, connection_id: int = 1000) -> None:
        self.client_step(ConnectionClosed(connection_id))

    def client_advance(self, ms: int) -> None:
        self.advance(ms)
        due_ms = self.clients.deadline_ms()
        if due_ms is not None and due_ms <= self.clock.ms:
            self.client_step(DeadlineReached())


def consuming(
    offset: int,
    *,
    session_id: int = 0,
    session_epoch: int = -1,
    epoch: int = -1,
    max_wait_ms: int = 0,
    partitions: bool = True,
) -> FetchRequest:
    """A consumer's Fetch of the metadata log."""
    partition = FetchPartition(0, epoch, offset, -1, -1, 1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])] if partitions else [],
    )
