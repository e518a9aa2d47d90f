"""A node beside the controller on the daemon's loop: its listeners, its requests, the times of its steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from time import monotonic_ns
from typing import Protocol

from kraftd.answers.effects import Answered, ImageReached, MetadataMoved, SendToNode
from kraftd.answers.node import AnsweringNode
from kraftd.ground.destination import Destination
from kraftd.ground.event import Event
from kraftd.host.executors.answering_executor import AnsweringExecutor
from kraftd.net.link import CLOSED
from kraftd.net.outbound import Failure, Outbound, Times
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine, LogLine
from kraftd.requests.events import CallHandedOver, FramesReceived
from kraftd.runtime.connections.wire import ConnectionWire
from kraftd.runtime.peers.sending import SOFTWARE, Road
from kraftd.runtime.reporting.loop_hold_times import LoopHoldTimes
from kraftd.wire.message import Message

# Events that a step of the controller causes.
OF_CONTROLLER_STEPS = (MetadataMoved, ImageReached)
FOLLOWED = Answered(0, None)  # an answer, as the times of steps name it
NAMED_EVERY_NS = 10 * 10**9  # why requests to a node fail


class Process(Protocol):
    """What the nodes of a process share: the controller's runner."""

    loop_hold_times: LoopHoldTimes
    lines: list[LogLine]
    after_step: Callable[[], None] | None

    @property
    def wire(self) -> ConnectionWire: ...

    def step(self, event: Event) -> None:
        """Step the controller."""

    def flush(self) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def audited(self, effect: AuditLine) -> None: ...


Make = Callable[["ServedNode"], AnsweringExecutor]


class ServedNode(ConnectionWire):
    """One node beside the process's controller, and the connections of its listeners.

    `make` makes the node's executor, whose wire this is. `roads` lead to the controllers ("") and to the
    brokers, by their listener; a listener without a road is unreachable. `client_id` is that of its requests.
    `channel_times` are those of channels whose requests fail sooner or later than the others.
    """

    def __init__(
        self,
        process: Process,
        listeners: Collection[str],
        roads: Mapping[str, Road],
        request_timeout_ms: int,
        make: Make,
        client_id: str,
        channel_times: Mapping[str, Times] = {},
    ) -> None:
        super().__init__(process.wire)
        self.listeners = frozenset(listeners)
        self._process = process
        self._stopped = False
        self._connections: set[int] = set()
        self.executor = make(self)
        self._roads = roads
        self._client_id = client_id
        self._times = Times(request_timeout_ms)
        self._times_of = channel_times
        self._outbounds: dict[tuple[str, str, str], Outbound] = {}  # by listener, client id and channel
        self._named_again_ns: dict[Destination, int] = {}

    @property
    def node(self) -> AnsweringNode:
        return self.executor.node

    # -- events

    def frames_received(self, event: FramesReceived) -> None:
        """Pass requests to the node."""
        self._connections.add(event.connection_id)
        self.executor.step(event)

    def connection_lost(self, connection_id: int) -> None:
        """Handle that a connection is gone, if it is one of these listeners'."""
        if connection_id in self._connections:
            self._connections.discard(connection_id)
            self.executor.connection_lost(connection_id)

    def end(self) -> None:
        """Stop timers and requests."""
        self._stopped = True
        self.executor.stop()
        for outbound in self._outbounds.values():
            outbound.close()

    def around(self, what: object, act: Callable[[], None]) -> None:
        """Run a step, or work that had to wait, send its answers and count them."""
        if self._stopped:
            return
        began_ns = monotonic_ns()
        try:
            try:
                act()
            finally:
                self._process.flush()
        except Exception as error:
            self._process.fail(error)
            return
        now_ns, node = monotonic_ns(), self.executor.node
        node.took(now_ns - began_ns)
        if self.answered_calls:
            is_request = type(what) is FramesReceived
            since_ns = what.arrived_ns if is_request else began_ns  # type: ignore[attr-defined]
            node.boundary.stats.answered(self.answered_calls, since_ns, now_ns)
            self.answered_calls.clear()
        if type(what) not in OF_CONTROLLER_STEPS:
            self._process.loop_hold_times.note(what, now_ns - began_ns)
        if self._process.after_step is not None:
            self._process.after_step()

    # -- effects

    def line(self, effect: LogLine) -> None:
        self._process.lines.append(effect)

    def audited(self, effect: AuditLine) -> None:
        self._process.audited(effect)

    def send_to_node(self, effect: SendToNode) -> None:
        to, road = effect.destination, self._roads.get(effect.listener)
        if road is None or not to.host:
            self.executor.timer.call_soon(self.executor.step, Answered(effect.request_id, None))
            return
        key = effect.listener, effect.client_id or self._client_id, effect.channel
        outbound = self._outbounds.get(key)
        if outbound is None:
            times = self._times_of.get(effect.channel, self._times)
            outbound = Outbound(key[1], SOFTWARE, self, road.wiring, times, road.login)
            outbound.follow = self.follow
            self._outbounds[key] = outbound
        outbound.send(effect.request_id, to, effect.message, effect.version)

    def hand_over(self, call: Call) -> None:
        self.executor.timer.call_soon(self._process.step, CallHandedOver(call))

    # -- answers of other nodes

    def follow(self, tag: Hashable, version: int, frame: memoryview) -> Message | bool:
        """Take an answer without a step, if the executor can, and count it as one."""
        if self._stopped:
            return False
        began_ns = monotonic_ns()
        try:
            following = self.executor.follow(tag, version, frame)  # type: ignore[arg-type]
        except Exception as error:
            self._process.fail(error)
            return True
        if following is not False:
            self._process.loop_hold_times.note(FOLLOWED, monotonic_ns() - began_ns)
            if self._process.after_step is not None:
                self._process.after_step()
        return following

    def answered(self, tag: Hashable, message: Message) -> None:
        self.executor.step(Answered(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self.executor.step(Answered(tag, None))  # type: ignore[arg-type]

    def lost(self, address: Destination, reason: str) -> None:
        """Log the reason, once in a while; idle connections are closed without one. What has asked learns
        that there is no answer.
        """
        now_ns = monotonic_ns()
        if reason != CLOSED and now_ns >= self._named_again_ns.get(address, 0):
            self._named_again_ns[address] = now_ns + NAMED_EVERY_NS
            at = f"{address.host}:{address.port}"
            fields = {"peer": address.node_id, "at": at, "reason": reason}
            self._process.lines.append(LogLine("warning", "a request to a node failed", fields))

    def silent(self, address: Destination, reason: str) -> None:
        self.lost(address, reason)

    def __repr__(self) -> str:
        return f"<ServedNode on {', '.join(sorted(self.listeners))}: {self.node!r}>"
