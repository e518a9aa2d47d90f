"""One run of a whole controller: the node (consensus core, image, decisions), reached by frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.context import Context, ControllerSettings
from kraftd.controller.decision import Decision
from kraftd.controller_node import effects as server
from kraftd.controller_node.node import Node
from kraftd.controller_node.routes import controller_registry
from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.host.executors.core_executor import EffectExecutor
from kraftd.host.executors.node_executor import NodeExecutor
from kraftd.log.errors import DiskFull
from kraftd.metadata.features import default_bootstrap_records
from kraftd.metadata.image import Image
from kraftd.raft import effects as raft
from kraftd.raft.config import DurableState, RaftConfig, Randomness
from kraftd.raft.core import RaftCore
from kraftd.raft.events import RequestAbandoned, RequestReceived, ShutdownRequested
from kraftd.replica.effects import SendToController
from kraftd.replica.events import ControllerAnswered
from kraftd.replica.identity import Identity
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer
from kraftd.requests.events import ConnectionClosed, FramesReceived
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.simulation.checkers.checker import OnEffect, Violation
from kraftd.simulation.processes.access_settings import ALLOW_ALL, TOKENS
from kraftd.simulation.processes.core_executor import NotingExecutor, PeerWire
from kraftd.simulation.processes.files import CLUSTER_ID, LISTENER, Files
from kraftd.simulation.processes.network import Link, Request
from kraftd.simulation.processes.process import Process, code_of
from kraftd.simulation.processes.state import Metadata, Registers
from kraftd.simulation.protocols import Host, World
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord

ANSWERS = (raft.Respond, raft.RespondRecords, raft.RespondSnapshot)
SASL_PLAINTEXT = 2  # as in Endpoint.security_protocol
KEPT_BY_THE_NODE = frozenset(  # the node makes effects of its own from them, or none
    {
        *ANSWERS,
        raft.HighWatermarkMoved,
        raft.ReplicaWentBack,
        raft.AppendAccepted,
        raft.AppendCommitted,
        raft.AppendAborted,
    }
)


def api_of(message: Message) -> int:
    """The API key of a request."""
    key: int = sys.modules[type(message).__module__].SCHEMA[1]
    return key


class WatchedCore(RaftCore):
    """The consensus core; checkers get each event, and the effects that stay in the node."""

    process: ControllerProcess

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        process = self.process
        checks, trace = process.world.checks, process.world.trace
        process.core_stepped = True
        process.led_before = self.epoch if self.is_leader else -1
        if type(event) is RequestReceived:
            process.requests[event.request_id] = None
        elif type(event) is RequestAbandoned:
            process.requests.pop(event.request_id, None)
        checks.before_step(process, event)
        made = super().step(event, now_ms)
        if not made:
            return made
        reset = any(type(effect) is raft.ResetLog for effect in made)  # the log is another one after a reset
        for effect in made:
            if trace.echo is not None:
                trace.write(process.world.schedule.now_us, f"{process.id}:   core: {effect!r}")
            if type(effect) not in KEPT_BY_THE_NODE:
                continue  # checked when it is performed
            for check in checks.on_effect.get(type(effect), ()):
                if reset or check in checks.of_votes:
                    process.effects_to_check.append((check, effect))
                else:
                    check(process, effect)
            if type(effect) in ANSWERS:
                process.requests.pop(effect.request_id, None)  # type: ignore[attr-defined]
        return made


def _decided(records: list[VersionedRecord]) -> Callable[[Context], Decision[None]]:
    return lambda _: Decision(None, records)


class ControllerProcess(Process):
    """See the module. Requests and answers are frames; connection and slot identify the caller."""

    reads_pieces = frozenset({server.AnswerSnapshot})

    def __init__(self, world: World, host: Host, config: RaftConfig, files: Files) -> None:
        self.effects_to_check: list[tuple[OnEffect, Effect]] = []
        self.core_stepped = False  # in this step of the node
        self.was_full = False  # the disk was full when this step began, with nothing decided
        self._connections: dict[Any, int] = {}
        self._slots: dict[tuple[int, int], Any] = {}
        self._last = 0
        self.node: Node
        super().__init__(world, host, config, files)

    def _make_core(self, durable: DurableState, rng: Randomness) -> RaftCore:
        core = WatchedCore(self.config, durable, rng, Purgatory(), Purgatory())
        core.process = self
        return core

    def _make_node(self) -> Node:
        world, host, config, files = self.world, self.host, self.config, self.files
        rng = world.rng("node", host.id, host.starts)
        settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=host.id,
            static_voter_ids=tuple(host.static_voters.ids),
            broker_session_timeout_ms=3_000,
            tokens=TOKENS,
        )
        heartbeats = BrokerHeartbeats(settings.broker_session_timeout_ms)
        now_ms = host.clock.now_ms(world.schedule.now_us)
        context = Context(Image(), now_ms, settings, heartbeats, rng)
        # Clients of a listener without logins may not ask for delegation tokens.
        listeners = tuple(one._replace(security_protocol=SASL_PLAINTEXT) for one in config.listeners)
        identity = Identity(host.id, CLUSTER_ID, rng.uuid(), listeners)
        bootstrap = files.storage.bootstrap or default_bootstrap_records()
        self.authorizer = StandardAuthorizer(ALLOW_ALL)
        return Node(
            identity,
            self.core,
            context,
            controller_registry,
            bootstrap,
            files.storage.snapshot(),
            self.authorizer,
        )

    def __repr__(self) -> str:
        return f"<ControllerProcess {self.host.starts} of {self.node!r}, {self.core!r}>"

    def _make_state(self) -> Registers | Metadata:
        return Metadata(self.files)

    def _make_executor(self) -> EffectExecutor:
        self.node = self._make_node()
        return ControllerExecutor(self)

    @property
    def next_offset(self) -> int:
        return self.node.decisions.appends.next_offset

    @property
    def replayed_to(self) -> int:
        return self.node.following.replay.next_offset

    def _take(self, event: Event) -> None:
        if type(event) is RequestReceived:
            event = self._as_frames(event)
        elif type(event) is ShutdownRequested:
            if self.broker is not None and self.broker.stop_first(event):
                return
            self.node.stop()
        super()._take(event)

    def step_node(self, event: Any, now_ms: int) -> list[Effect]:
        """Step the node with an event, watched by the checkers."""
        return self._watched(event, code_of(type(event)), partial(self.node.step, event, now_ms), now_ms)

    def _watched(self, event: Any, code: int, step: Callable[[], list[Effect]], now_ms: int) -> list[Effect]:
        world, core = self.world, self.core
        now_us = world.schedule.now_us
        self.now_ms = now_ms
        if world.trace.echo is not None:
            world.trace.write(now_us, f"{self.id}: {event!r}")
        self.effects_to_check.clear()
        self.core_stepped = False
        self.was_full = self.node.decision_rights.disk_full and not len(self.node.decisions.appends)
        made = step()
        end = core.log_end_offset
        world.trace.step(now_us, self.id, code, core.epoch, end, core.high_watermark, len(made))
        return made

    def _cut_short(self) -> None:
        """Handle a step that is cut short: a durable vote may have been sent, and counts."""
        for check, effect in self.effects_to_check:
            if check in self.world.checks.of_votes:
                with suppress(Violation):  # it was not durable yet
                    check(self, effect)
        self.effects_to_check.clear()

    def _after_step(self) -> None:
        for check, effect in self.effects_to_check:
            check(self, effect)
        self.effects_to_check.clear()
        self.world.controller_checks.stepped(self)
        if self.core_stepped:
            self.world.checks.after_step(self)
        self._end_if_shut_down()

    def write(self, *writings: list[VersionedRecord]) -> bool:
        """Take decisions without calls, one after the other in one step; returns False if the node may not
        decide.
        """
        node = self.node
        if not node.active or node.decision_rights.stopping or node.decision_rights.disk_full or self.is_held:
            return False

        self.guarded(self.executor.follow_wall_clock)
        if self.ended or not node.active:
            return False
        now_ms = self.ports.timer.now_ms()

        def step() -> list[Effect]:
            node.context.now_ms = now_ms
            for records in writings:
                if node.active:
                    node.decisions.decide_alone(_decided(records))
                    node.decisions.appends.flush()  # each is a batch of its own
            return node.outbox.take()

        def write() -> None:
            self.executor.perform(self._watched("writes of its own", len(writings), step, now_ms))

        self.guarded(write)
        return True

    @property
    def waits_for_room(self) -> bool:
        return self.node.decision_rights.disk_full or self.executor.waits_for_room

    # --- frames ---

    def link_closed(self, link: Link) -> None:
        connection_id = self._connections.pop(link, None)
        if connection_id is not None:
            self.deliver(ConnectionClosed(connection_id))

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

    def write_answer(self, connection_id: int, slot: int, parts: list[Any]) -> None:
        """An answer of the node."""
        outstanding = self._slots.pop((connection_id, slot), None)
        if outstanding is None:
            self.world.checks.fail("S19", f"{self!r} answers {connection_id}/{slot} again")
        request, key, version = outstanding
        if not parts:
            return
        _, message = parse_response(key, version, memoryview(b"".join(parts))[4:])
        self.answer(request, message)

    def refuse_request(self, event: FramesReceived) -> None:
        """Close the connection of a request that cannot be accepted now."""
        request, _, _ = self._slots.pop((event.connection_id, event.first_slot))
        self.hang_up(request)

    def close_connection(self, connection_id: int) -> None:
        """Close a link, or the connection of a client's single call."""
        for key in [one for one in self._slots if one[0] == connection_id]:
            request = self._slots[key][0]
            if isinstance(request, Request):
                self.world.network.reset(request.link)
                return  # the node and its peer are notified together; until then it may answer others
            del self._slots[key]
            self.hang_up(request)

    def controller_answered(self, request_id: int, message: Message | None) -> None:
        """Handle the result of a SendToController."""
        self.deliver(ControllerAnswered(request_id, message))


class FrameWire(PeerWire):
    """The connections of a whole controller, whose requests come as frames."""

    def __init__(self, process: ControllerProcess) -> None:
        super().__init__(process)
        self._controller = process

    def answer(self, effect: Answer) -> None:
        self._controller.write_answer(effect.connection_id, effect.slot, effect.parts)

    def respond(self, call: Call, parts: list[Any]) -> None:
        self._controller.write_answer(call.connection_id, call.slot, parts)

    def close(self, connection_id: int, reason: str) -> None:
        self._controller.close_connection(connection_id)

    def mute(self, connection_id: int, is_muted: bool) -> None:
        raise TypeError("no quota is set")

    def send_to_controller(self, effect: SendToController) -> None:
        self._controller.world.workload.send_to_controller(self._controller, effect)

    def refuse_request(self, event: Any) -> bool:
        if type(event) is FramesReceived:
            self._controller.refuse_request(event)
            return True
        return super().refuse_request(event)


class ControllerExecutor(NotingExecutor, NodeExecutor):
    """The daemon's executor, which also notifies the checkers of durable state and full disks."""

    def __init__(self, process: ControllerProcess) -> None:
        files = process.files
        super().__init__(
            process.node,
            files.storage,
            files.download,
            FrameWire(process),
            process.ports,
            max_waiting_bytes=0,
            machine_step=process.step_node,
        )
        self.process = process

    def disk_filled(self, error: DiskFull) -> None:
        process = self.process
        process.world.note("disk filled", process.id)
        super().disk_filled(error)
        leads_others = process.core.is_leader and len(process.core.voters) > 1
        if not self.is_held and not process.ended and leads_others:
            process.world.checks.fail("D4", f"{process!r} leads others with a full disk")

    def disk_has_room(self) -> None:
        self.process.world.note("disk has room", self.process.id)
        super().disk_has_room()
