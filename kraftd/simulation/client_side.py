"""The client node of a simulated process: requests of readers arrive as frames, answers are read from its
log.

The node is the daemon's (`kraftd.metadata_topic_node`), and so is its view of the replica (`NodeView`). A
replica without a controller shows its log, and an image without topics.
"""

from __future__ import annotations

from typing import Any

from kraftd.answers.settings import ClientSettings
from kraftd.fetch.session_cache import CacheLimits
from kraftd.ground.event import Event
from kraftd.host.client_executor import ClientExecutor
from kraftd.host.cluster_view import NodeView
from kraftd.host.ports import Effects
from kraftd.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftd.metadata.image import Image
from kraftd.metadata_topic_node.effects import Answered, SendToNode
from kraftd.metadata_topic_node.node import ClientNode
from kraftd.replica.finalized_features import FinalizedFeatures
from kraftd.replica.identity import Identity
from kraftd.replica.replay import Replay
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, CloseConnection, LogLine
from kraftd.requests.events import ConnectionClosed, FramesReceived
from kraftd.simulation.controller_process import ControllerProcess
from kraftd.simulation.files import CLUSTER_ID, LISTENER
from kraftd.simulation.process import Process, code_of
from kraftd.types import METADATA_TOPIC

EVICTION_MS = 500  # of the caches of sessions here; two minutes are longer than most worlds
MAX_SESSION_ID = 2**31 - 9


class BareNode:
    """The target of a `NodeView`, for a replica without a controller."""

    def __init__(self, process: Process) -> None:
        self.core = process.core
        self.identity = Identity(process.id, CLUSTER_ID, bytes(16), process.config.listeners)
        self.image = Image()
        self.context = None
        self.active = False
        self.finalized = FinalizedFeatures()
        self.finalized.epoch = 0  # there is nothing to load
        self.following = self
        self.replay = Replay(self.image, None)


class ReaderWire:
    """The connections of readers to a process's client node. Closed ones stay in `closed`."""

    def __init__(self, side: ClientSide) -> None:
        self.closed: set[int] = set()
        self._side = side
        self._readers = side.process.world.readers

    def is_open(self, connection_id: int) -> bool:
        return connection_id not in self.closed

    def respond(self, call: Call, parts: list[Any]) -> None:
        self._readers.answered(self._side, call.slot, parts)

    def close(self, connection_id: int, _reason: str) -> None:
        self._readers.hung_up(connection_id)


class ClientSide(ClientExecutor):
    """One process's client node; made when its first reader comes."""

    def __init__(self, process: Process) -> None:
        self.process = process
        world, host = process.world, process.host
        node: Any = process.node if isinstance(process, ControllerProcess) else BareNode(process)
        view = NodeView(node, process.files.storage)
        self._ids = world.dice("session ids", host.id, host.starts)
        limits = CacheLimits(slots=world.options.session_slots, eviction_ms=EVICTION_MS)
        settings = ClientSettings({LISTENER: process.config.listeners[0]}, session_limits=limits)
        client_node = ClientNode(view, settings, lambda: self._ids.between(1, MAX_SESSION_ID))
        self._connections = ReaderWire(self)
        super().__init__(client_node, view, process.files.log, process.ports, self._connections)
        self._event: Event | None = None  # of this step
        self._own = super().performers() | {SendToNode: self._send_to_node}

    def receive(self, connection_id: int, slot: int, frame: memoryview) -> None:
        """Handle a reader's request; one that arrives after the close of its connection is lost."""
        if self._connections.is_open(connection_id):
            self._deliver(FramesReceived(connection_id, slot, [frame], LISTENER, "reader"))

    def close(self, connection_id: int) -> None:
        """Handle that a reader has closed its connection."""
        self._connections.closed.add(connection_id)
        self.reads.forget(connection_id)
        self._deliver(ConnectionClosed(connection_id))

    def keeps(self, session_id: int) -> bool:
        """Return whether the session still exists. The parked fetch of an evicted one is answered at once,
        perhaps before the latest change reaches it.
        """
        return self.node.fetches.sessions.cache.get(session_id) is not None

    def _deliver(self, event: Event) -> None:
        process = self.process
        if not process.asleep(self._deliver, event):
            process.guarded(self.step, event)

    def step(self, event: Event) -> None:
        trace = self.process.world.trace
        if trace.echo is not None:
            trace.write(self.process.world.schedule.now_us, f"{self.process.id}: client side: {event!r}")
        self._event = event
        super().step(event)

    def carry_out(self, made: Effects) -> None:
        process, core, effects = self.process, self.process.core, list(made)
        process.world.trace.step(
            process.world.schedule.now_us,
            process.id,
            code_of(type(self._event)),
            core.epoch,
            core.log_end_offset,
            core.high_watermark,
            len(effects),
        )
        for effect in effects:
            self._perform(effect)

    def _send_to_node(self, effect: SendToNode) -> None:
        """Carry a question about the leader's log to that node; one that does not lead gives no answer."""
        world, readers = self.process.world, self.process.world.readers

        def answer() -> None:
            leader = world.cluster.hosts[effect.destination.node_id].process
            message = None
            if leader is not None and leader.core.is_leader:
                world.trace.kinds["reader past the end of a log"] += 1
                core, node_id = leader.core, leader.id
                ends = [ReplicaState(node_id, log_end_offset=core.log_end_offset)]
                partition = PartitionData(0, 0, None, node_id, core.epoch, core.high_watermark or 0, ends)
                message = DescribeQuorumResponse(topics=[TopicData(METADATA_TOPIC, [partition])])
            world.schedule.after(readers.delay_us(), self._answered, Answered(effect.request_id, message))

        world.schedule.after(readers.delay_us(), answer)

    def _answered(self, event: Answered) -> None:
        if not self.process.ended:
            self._deliver(event)

    def _perform(self, effect: Any) -> None:
        readers = self.process.world.readers
        kind = type(effect)
        if kind is Answer:
            readers.answered(self, effect.slot, effect.parts)
        elif kind is LogLine:
            getattr(self.process.ports.log, effect.level)(effect.text, **effect.fields)
        elif kind in self._own:
            self._own[kind](effect)
        elif kind is CloseConnection:
            self.process.world.checks.fail("S20", f"{self!r} takes a fetch for none: {effect.reason}")
        else:
            raise TypeError(f"no reader causes {effect!r}")

    def __repr__(self) -> str:
        return f"<ClientSide of {self.process!r}>"
