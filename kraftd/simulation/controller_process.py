"""One run of a whole controller: the node (consensus core, image, decisions), reached by frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kraftd.controller.context import Context, ControllerSettings
from kraftd.controller.decision import Decision
from kraftd.controller.heartbeats import BrokerHeartbeats
from kraftd.metadata.features import default_bootstrap_records
from kraftd.metadata.image import Image
from kraftd.raft import effects as raft
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import Effect
from kraftd.raft.events import Event, RequestAbandoned, RequestReceived, ShutdownRequested
from kraftd.server import effects as server
from kraftd.server.events import (
    CommittedRead,
    ConnectionClosed,
    DiskFilled,
    DiskHasRoom,
    FramesReceived,
    TurnCame,
    TurnEnded,
)
from kraftd.server.identity import Identity
from kraftd.server.node import Node
from kraftd.server.registration import AskController, ControllerAnswered
from kraftd.server.snapshot_download import OpenSnapshot
from kraftd.simulation.checkers.checks import OnEffect, Violation
from kraftd.simulation.files import CLUSTER_ID, LISTENER, Files
from kraftd.simulation.network import Link, Request
from kraftd.simulation.process import Process, code_of
from kraftd.simulation.state import Metadata, Registers
from kraftd.storage.errors import CorruptStorage, StorageError
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord

if TYPE_CHECKING:
    from kraftd.simulation.cluster import Host
    from kraftd.simulation.world import World

TURN_US = 5
ANSWERS = (raft.Respond, raft.RespondRecords, raft.RespondSnapshot)
KEPT_BY_THE_NODE = frozenset(  # it makes effects of its own of them, or none
    {*ANSWERS, raft.HighWatermarkMoved, raft.AppendAccepted, raft.AppendCommitted, raft.AppendAborted}
)


def api_of(message: Message) -> int:
    """The API key of a request."""
    key: int = sys.modules[type(message).__module__].SCHEMA[1]
    return key


class WatchedCore:
    """The consensus core, with the checkers looking at each event, and at what the node keeps to itself."""

    def __init__(self, core: RaftCore, process: ControllerProcess) -> None:
        self._core = core
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        process, core = self._process, self._core
        checks, trace = process.world.checks, process.world.trace
        process.core_stepped = True
        process.led_before = core.epoch if core.is_leader else -1
        if type(event) is RequestReceived:
            process.requests[event.request_id] = None
        elif type(event) is RequestAbandoned:
            process.requests.pop(event.request_id, None)
        checks.before_step(process, event)
        made = core.step(event, now_ms)
        reset = any(type(effect) is raft.ResetLog for effect in made)  # the log is another once that is done
        for effect in made:
            if trace.tell is not None:
                trace.say(process.world.schedule.now_us, f"{process.id}:   core: {effect!r}")
            if type(effect) not in KEPT_BY_THE_NODE:
                continue  # looked at when it is performed
            for check in checks.on_effect.get(type(effect), ()):
                if reset or check in checks.of_votes:
                    process.told.append((check, effect))
                else:
                    check(process, effect)
            if type(effect) in ANSWERS:
                process.requests.pop(effect.request_id, None)  # type: ignore[attr-defined]
        return made


def _decided(records: list[VersionedRecord]) -> Callable[[Context], Decision[None]]:
    return lambda _: Decision(None, records)


class ControllerProcess(Process):
    """See the module. Requests come and go as frames; who asked is found by connection and slot."""

    def __init__(self, world: World, host: Host, config: RaftConfig, files: Files) -> None:
        super().__init__(world, host, config, files)
        dice = world.dice("node", host.id, host.starts)
        settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=host.id,
            static_voter_ids=tuple(host.static_voters.ids),
            session_timeout_ms=3_000,
        )
        heartbeats = BrokerHeartbeats(settings.session_timeout_ms)
        now_ms = host.clock.now_ms(world.schedule.now_us)
        context = Context(Image(), now_ms, settings, heartbeats, dice)
        identity = Identity(host.id, CLUSTER_ID, dice.uuid(), config.listeners)
        bootstrap = files.storage.bootstrap or default_bootstrap_records()
        watched: Any = WatchedCore(self.core, self)
        self.node = Node(identity, watched, context, bootstrap, files.storage.snapshot())
        self.told: list[tuple[OnEffect, Effect]] = []
        self.core_stepped = False  # in this step of the node
        self.was_full = False  # the disk, when this step began with nothing decided
        self._connections: dict[Any, int] = {}
        self._slots: dict[tuple[int, int], Any] = {}
        self._last = 0
        self._perform |= self._node_effects()

    def __repr__(self) -> str:
        return f"<ControllerProcess {self.host.starts} of {self.node!r}, {self.core!r}>"

    def _make_state(self) -> Registers | Metadata:
        return Metadata(self.files)

    def _node_effects(self) -> dict[type, Callable[[Any], None]]:
        return {
            server.Answer: self._send_answer,
            server.AnswerRecords: self._send_records,
            server.AnswerSnapshot: self._send_snapshot,
            server.ReadCommitted: self._read_committed,
            server.TakeTurn: self._take_turn,
            server.EndTurn: self._end_turn,
            OpenSnapshot: self._open_snapshot,
            AskController: self._ask_controller,
        }

    @property
    def next_offset(self) -> int:
        return self.node.next_offset

    @property
    def replayed_to(self) -> int:
        return self.node.replay.next_offset

    def _due_ms(self) -> int | None:
        return self.node.deadline_ms()

    def step(self, event: Event) -> None:
        """One event and its effects; the process may end on the way."""
        if self.held is not None:
            self._wait_behind(event)
            return
        kind = type(event)
        if kind is RequestReceived:
            event = self._as_frames(event)
        elif kind is ShutdownRequested:
            self.node.stop()
        self._drive(event, code_of(kind), lambda now_ms: self.node.step(event, now_ms))

    def _drive(self, event: Any, code: int, step: Callable[[int], list[Effect]]) -> None:
        world, core = self.world, self.core
        now_us = world.schedule.now_us
        now_ms = self.now_ms = self.host.clock.now_ms(now_us)
        if world.trace.tell is not None:
            world.trace.say(now_us, f"{self.id}: {event!r}")
        self.told.clear()
        self.core_stepped = False
        self.was_full = self.node.disk_full and not len(self.node.appends)
        try:
            made = step(now_ms)
        except CorruptStorage as error:  # the snapshot that is being loaded
            world.cluster.failed(self.host, error)
            return
        end = core.log_end_offset
        world.trace.step(now_us, self.id, code, core.epoch, end, core.high_watermark, len(made))
        self._carry_out(made)

    def _cut_short(self) -> None:
        """A vote that was durable may have been told, and count."""
        for check, effect in self.told:
            if check in self.world.checks.of_votes:
                with suppress(Violation):  # it was not durable yet
                    check(self, effect)

    def _carried_out(self) -> None:
        for check, effect in self.told:
            check(self, effect)
        self.world.controller_checks.stepped(self)
        if self.core_stepped:
            self.world.checks.after_step(self)
        if self.shutdown_completed:
            self.world.cluster.stopped(self.host)
        else:
            self._look_at_the_clock()

    def write(self, *writings: list[VersionedRecord]) -> bool:
        """Decisions of the node's own, one after the other in one step; False when it may take none."""
        node = self.node
        if not node.active or node.stopping or node.disk_full or self.held is not None:
            return False

        def step(now_ms: int) -> list[Effect]:
            node.now_ms = node.context.now_ms = now_ms
            for records in writings:
                if node.active:
                    node.decide_alone(_decided(records))
                    node.appends.give(node)  # each is a batch of its own
            made, node._out = node._out, []
            return made

        self._drive("writes of its own", len(writings), step)
        return True

    # --- a full disk ---

    def _disk_filled(self) -> None:
        self.step(DiskFilled("no space left on device"))
        if self.held is None and not self.ended and self.core.is_leader and len(self.core.voters) > 1:
            self.world.checks.fail("D4", f"{self!r} leads others with a full disk")

    def _disk_has_room(self) -> None:
        self.step(DiskHasRoom())

    @property
    def waits_for_room(self) -> bool:
        return self.node.disk_full or self.held is not None

    # --- frames ---

    def link_closed(self, link: Link) -> None:
        connection_id = self._connections.pop(link, None)
        if connection_id is not None:
            self.tell(ConnectionClosed(connection_id))

    def _connection(self, request: Any) -> int:
        """A connection for each link, and one for each call of a client."""
        of = request.link if isinstance(request, Request) else request
        found = self._connections.get(of)
        if found is None:
            self._last += 1
            found = self._connections[of] = self._last
        return found

    def _as_frames(self, event: Any) -> FramesReceived:
        self._last += 1
        connection_id, slot = self._connection(event.request_id), self._last
        self._slots[connection_id, slot] = event.request_id, api_of(event.message), event.version
        parts = encode_request(api_of(event.message), event.version, slot, "simulated", event.message)
        frame = memoryview(b"".join(parts))[4:]
        return FramesReceived(connection_id, slot, [frame], LISTENER, "host")

    def _send_answer(self, effect: server.Answer) -> None:
        self._give(effect.connection_id, effect.slot, effect.parts)

    def _send_records(self, effect: server.AnswerRecords) -> None:
        call = effect.call
        try:
            data = self.files.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except CorruptStorage:
            self._close(call)
        else:
            self._give(call.connection_id, call.slot, effect.fill(data))

    def _send_snapshot(self, effect: server.AnswerSnapshot) -> None:
        self._when_read(self._send_piece, effect)

    def _send_piece(self, effect: server.AnswerSnapshot) -> None:
        data = self._read_snapshot(effect.snapshot_id, effect.position, effect.max_bytes)
        if data is None:
            self._close(effect.call)
        else:
            self._give(effect.call.connection_id, effect.call.slot, effect.fill(data))

    def _close(self, call: Any) -> None:
        """What was asked for cannot be read."""
        request, _, _ = self._slots.pop((call.connection_id, call.slot))
        self._hang_up(request)

    def _give(self, connection_id: int, slot: int, parts: list[Any]) -> None:
        asked = self._slots.pop((connection_id, slot), None)
        if asked is None:
            self.world.checks.fail("S19", f"{self!r} answers {connection_id}/{slot} again")
        request, key, version = asked
        if not parts:
            return
        _, message = parse_response(key, version, memoryview(b"".join(parts))[4:])
        self._answer(request, message)

    # --- what the node asks for ---

    def _read_committed(self, effect: server.ReadCommitted) -> None:
        self.world.schedule.after(TURN_US, self._read, effect)

    def _read(self, effect: server.ReadCommitted) -> None:
        if self.ended or effect.offset < self.files.log.log_start:
            return  # a snapshot has replaced the log since
        try:
            data = self.files.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
        else:
            self.tell(CommittedRead(effect.offset, data))

    def _take_turn(self, _: server.TakeTurn) -> None:
        self.world.schedule.after(TURN_US, self.tell, TurnCame())

    def _end_turn(self, _: server.EndTurn) -> None:
        self.world.schedule.after(TURN_US, self.tell, TurnEnded())

    def _open_snapshot(self, effect: OpenSnapshot) -> None:
        self.world.schedule.after(TURN_US, self._opened, effect)

    def _opened(self, effect: OpenSnapshot) -> None:
        if self.ended:
            return
        try:
            opened = self.files.download.open(effect)
        except StorageError as error:
            self.world.cluster.failed(self.host, error)
        else:
            self.tell(opened)

    def _ask_controller(self, effect: AskController) -> None:
        self.world.workload.ask_controller(self, effect)

    def controller_answered(self, ask_id: int, message: Message | None) -> None:
        """What came of an AskController."""
        self.tell(ControllerAnswered(ask_id, message))
