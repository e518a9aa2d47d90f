"""The metadata log as a topic, at a simulated process: requests of readers arrive as frames, answers are read
from its log.

The node is the daemon's (`kraftd.metadata_topic_node`), and so is its view of the replica (`NodeView`). A
replica without a controller shows its log, and an image without topics.
"""

from __future__ import annotations

from typing import Any

from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.settings import ClientSettings
from kraftd.fetch.session_cache import CacheLimits
from kraftd.ground.event import Event
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.answer_reads import UNREADABLE
from kraftd.host.executors.metadata_topic_executor import MetadataTopicExecutor
from kraftd.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftd.metadata.image import Image
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.metadata_topic_node.routes import client_registry
from kraftd.replica.finalized_features import FinalizedFeatures
from kraftd.replica.identity import Identity
from kraftd.replica.replay import Replay
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AuditLine, LogLine
from kraftd.requests.events import ConnectionClosed, FramesReceived
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.files import CLUSTER_ID, LISTENER
from kraftd.simulation.processes.process import Process, code_of
from kraftd.types import METADATA_TOPIC

EVICTION_MS = 500  # of the caches of sessions here; two minutes are longer than most worlds
MAX_SESSION_ID = 2**31 - 9


class BareNode:
    """The target of a `NodeView`, for a replica without a controller."""

    def __init__(self, process: Process) -> None:
        self.core = process.core
        self.identity = Identity(process.id, CLUSTER_ID, bytes(16), process.config.listeners)
        self.image = Image()
        self.context = self  # for its image
        self.active = False
        self.finalized_features = FinalizedFeatures()
        self.finalized_features.epoch = 0  # there is nothing to load
        self.following = self
        self.replay = Replay(self.image, None)


class ReaderWire:
    """The connections of readers to one process. Closed ones stay in `closed`."""

    def __init__(self, side: ClientSide) -> None:
        self.closed: set[int] = set()
        self._side = side
        self._readers = side.process.world.readers

    def is_open(self, connection_id: int) -> bool:
        return connection_id not in self.closed

    def respond(self, call: Call, parts: list[Any]) -> None:
        self._readers.answered(self._side, call.slot, parts)

    def close(self, connection_id: int, reason: str) -> None:
        if reason != UNREADABLE:
            self._side.process.world.checks.fail("S20", f"{self._side!r} takes a fetch for none: {reason}")
        self._readers.hung_up(connection_id)

    def flush(self) -> None: ...

    def answer(self, effect: Answer) -> None:
        self._readers.answered(self._side, effect.slot, effect.parts)

    def mute(self, connection_id: int, is_muted: bool) -> None:
        raise TypeError("no quota is set")

    def line(self, effect: LogLine) -> None:
        getattr(self._side.lines, effect.level)(effect.text, **effect.fields)

    def audited(self, effect: AuditLine) -> None:
        raise TypeError(f"no reader causes {effect!r}")

    def hand_over(self, call: Call) -> None:
        raise TypeError(f"no reader causes {call!r}")

    def send_to_node(self, effect: SendToNode) -> None:
        self._side.send_to_node(effect)


class ClientSide(MetadataTopicExecutor):
    """One process's node for readers; made when the first one comes."""

    def __init__(self, process: Process) -> None:
        self.process = process
        world, host = process.world, process.host
        node: Any = process.node if isinstance(process, ControllerProcess) else BareNode(process)
        view = NodeView(node, process.files.storage)
        self._ids = world.rng("session ids", host.id, host.starts)
        limits = CacheLimits(slots=world.options.session_slots, eviction_ms=EVICTION_MS)
        settings = ClientSettings({LISTENER: process.config.listeners[0]}, session_limits=limits)
        node_of_log = MetadataTopicNode(
            view, settings, client_registry, lambda: self._ids.between(1, MAX_SESSION_ID)
        )
        self._connections = ReaderWire(self)
        super().__init__(node_of_log, view, process.files.log, process.ports, self._connections)

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

    def _take(self, event: Event) -> None:
        process, world = self.process, self.process.world
        if world.trace.echo is not None:
            world.trace.write(world.schedule.now_us, f"{process.id}: client side: {event!r}")
        core, effects = process.core, self.node.step(event, self.timer.now_ms())
        world.trace.step(
            world.schedule.now_us,
            process.id,
            code_of(type(event)),
            core.epoch,
            core.log_end_offset,
            core.high_watermark,
            len(effects),
        )
        for effect in effects:
            self.performers[type(effect)](effect)

    def send_to_node(self, effect: SendToNode) -> None:
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

    def __repr__(self) -> str:
        return f"<ClientSide of {self.process!r}>"
