"""Drives a client node on the daemon's loop: its calls, its reads, its own requests to other nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from time import monotonic_ns
from typing import Any

from kraftd.ground.event import Event
from kraftd.host.client_executor import ClientExecutor
from kraftd.host.cluster_view import NodeView
from kraftd.host.ports import ClientWire, Effects, Ports
from kraftd.log.partition_log import PartitionLog
from kraftd.metadata_topic_node import effects as client_effects
from kraftd.metadata_topic_node.node import ClientNode
from kraftd.net.outbound import Address, Failure, Outbound, Times
from kraftd.requests.call import Call
from kraftd.requests.events import (
    CallHandedOver,
    ConnectionClosed,
    FramesReceived,
)
from kraftd.runtime.peers import SOFTWARE, Road
from kraftd.wire.message import Message

# Events that a step of the controller causes.
OF_CONTROLLER_STEPS = (client_effects.MetadataMoved, client_effects.ImageReached)


class ClientSide(ClientExecutor):
    """One client node, its requests to other nodes, and the times of its steps.

    `perform` performs the effects of every node, and `perform_late` the reads that had to wait. `note_hold`
    gets the nanoseconds of each step; `step_controller` passes an event to the node's controller; `failed`
    gets errors that must end the process. `roads` lead to the controllers ("") and to the brokers, by their
    listener; a listener without a road is unreachable.
    """

    def __init__(
        self,
        node: ClientNode,
        view: NodeView,
        log: PartitionLog,
        listeners: Collection[str],
        ports: Ports,
        wire: ClientWire,
        roads: Mapping[str, Road],
        request_timeout_ms: int,
        step_controller: Callable[[Event], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__(node, view, log, ports, wire)
        self.listeners = frozenset(listeners)
        self.perform: Callable[[Iterable[Any], list[Call]], None] = lambda effects, answered: None
        self.perform_late: Callable[[Callable[[], None]], None] = lambda reads: reads()
        self.note_hold: Callable[[Any, int], None] = lambda event, held_ns: None
        self._step_controller = step_controller
        self._failed = failed
        self._stopped = False
        self._answered: list[Call] = []
        times = Times(request_timeout_ms)
        self.outbounds = {
            listener: Outbound(f"kraftd-{view.node_id}", SOFTWARE, self, road.wiring, times, road.login)
            for listener, road in roads.items()
        }
        self._connections: set[int] = set()

    def performers(self) -> dict[type, Callable[[Any], object]]:
        """The performers of the client node's own effects, by type."""
        return super().performers() | {
            client_effects.SendToNode: self._send_to_node,
            client_effects.HandToController: self._hand_over,
        }

    # -- events

    def frames_received(self, event: FramesReceived) -> None:
        self._connections.add(event.connection_id)
        self.step(event, event.arrived_ns)

    def connection_lost(self, connection_id: int) -> None:
        self.reads.forget(connection_id)
        if connection_id in self._connections:
            self._connections.discard(connection_id)
            self.step(ConnectionClosed(connection_id))

    def end(self) -> None:
        """Stop timers and requests."""
        self._stopped = True
        self.stop()
        for outbound in self.outbounds.values():
            outbound.close()

    def step(self, event: Event, began_ns: int = 0) -> None:
        """Step the node with an event and perform the effects; `began_ns` is the current time, if known."""
        if self._stopped:
            return
        step_began_ns = monotonic_ns()
        answered: list[Call] = []
        self._answered = answered
        try:
            super().step(event)
        except Exception as error:
            self._failed(error)
            return
        now_ns = monotonic_ns()
        if answered:
            self.node.boundary.stats.answered(answered, began_ns or step_began_ns, now_ns)
        if type(event) not in OF_CONTROLLER_STEPS:
            self.note_hold(event, now_ns - step_began_ns)

    def carry_out(self, made: Effects) -> None:
        self.perform(made, self._answered)

    def read_late(self, reads: Callable[[], None]) -> None:
        self.perform_late(reads)

    # -- effects

    def _send_to_node(self, effect: client_effects.SendToNode) -> None:
        to, outbound = effect.destination, self.outbounds.get(effect.listener)
        if outbound is None:
            self._timer.call_soon(self.step, client_effects.Answered(effect.request_id, None))
        else:
            outbound.send(effect.request_id, Address(to.node_id, to.host, to.port), effect.message)

    def _hand_over(self, effect: client_effects.HandToController) -> None:
        self._timer.call_soon(self._step_controller, CallHandedOver(effect.call))

    # -- answers of other nodes

    def answered(self, tag: Hashable, message: Message) -> None:
        self.step(client_effects.Answered(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self.step(client_effects.Answered(tag, None))  # type: ignore[arg-type]

    def lost(self, address: Address, reason: str) -> None: ...

    def silent(self, address: Address) -> None: ...

    def __repr__(self) -> str:
        return f"<ClientSide on {', '.join(sorted(self.listeners))}: {self.node!r}>"
