"""Drives a client node on the daemon's loop: its calls, its reads, its own requests to other nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from time import monotonic_ns
from typing import Any, Protocol

from kraftd.client_node import effects as client_effects
from kraftd.client_node.node import ClientNode
from kraftd.host.cluster_view import NodeView
from kraftd.log.errors import StorageFailure
from kraftd.log.partition_log import PartitionLog
from kraftd.log.timestamps import max_timestamp, offset_for_timestamp
from kraftd.net.outbound import Address, Failure, Outbound, Times
from kraftd.raft.events import DeadlineReached, Event
from kraftd.requests.call import Call
from kraftd.requests.events import (
    AnswerNotWritten,
    CallHandedOver,
    ConnectionClosed,
    FramesReceived,
    TurnCame,
)
from kraftd.runtime.clock import Clock
from kraftd.runtime.peers import SOFTWARE, Road
from kraftd.wire.message import Message

Perform = Callable[[Any], None]


class Loop(Protocol):
    """The methods of an event loop that are used here."""

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> object: ...

    def call_later(self, delay_s: float, function: Callable[[], object]) -> Any: ...


class ClientSide:
    """One client node and what it needs of the loop.

    `carry_out` performs the effects of every node; `note_hold` gets the nanoseconds of each step;
    `step_controller` passes an event to the node's controller; `failed` gets errors that must end the
    process. `roads` lead to the controllers ("") and to the brokers, by their listener; a listener without
    one is unreachable.
    """

    def __init__(
        self,
        node: ClientNode,
        view: NodeView,
        log: PartitionLog,
        listeners: Collection[str],
        clock: Clock,
        loop: Loop,
        roads: Mapping[str, Road],
        request_timeout_ms: int,
        step_controller: Callable[[Event], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        self.listeners = frozenset(listeners)
        self.carry_out: Callable[[Iterable[Any], list[Call]], None] = lambda effects, answered: None
        self.note_hold: Callable[[Any, int], None] = lambda event, held_ns: None
        self._view = view
        self._log = log
        self._clock = clock
        self._loop = loop
        self._step_controller = step_controller
        self._failed = failed
        self._marks = view.marks()
        self._timer: Any = None
        self._timer_ms = 0
        self._stopped = False
        times = Times(request_timeout_ms)
        self.outbounds = {
            listener: Outbound(f"kraftd-{view.node_id}", SOFTWARE, self, road.wiring, times, road.login)
            for listener, road in roads.items()
        }
        self._connections: set[int] = set()

    def performers(self) -> dict[type, Perform]:
        """The performers of the client node's own effects, by type; the runner reads for AnswerFetch."""
        return {
            client_effects.LookUpTimes: self._look_up_times,
            client_effects.Ask: self._ask,
            client_effects.HandToController: self._hand_over,
            client_effects.TakeClientTurn: self._take_turn,
        }

    # -- events

    def frames_received(self, event: FramesReceived) -> None:
        self._connections.add(event.connection_id)
        self._step(event, event.arrived_ns)

    def connection_lost(self, connection_id: int) -> None:
        if connection_id in self._connections:
            self._connections.discard(connection_id)
            self._step(ConnectionClosed(connection_id))

    def poll(self) -> None:
        """After each step of the controller: notify the client node if something that it sees has changed."""
        marks = self._view.marks()
        if marks != self._marks:
            self._marks = marks
            self._step(client_effects.MetadataMoved())

    def stop(self) -> None:
        """Stop timers and requests."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for outbound in self.outbounds.values():
            outbound.close()

    def _step(self, event: Event, began_ns: int = 0) -> None:
        if self._stopped:
            return
        step_began_ns = monotonic_ns()
        began_ns = began_ns or step_began_ns
        answered: list[Call] = []
        try:
            made = self.node.step(event, self._clock.now_ms())
            self.carry_out(made, answered)
        except Exception as error:
            self._failed(error)
            return
        now_ns = monotonic_ns()
        if answered:
            self.node.boundary.stats.answered(answered, began_ns, now_ns)
        if type(event) is not client_effects.MetadataMoved:  # a part of the controller's step
            self.note_hold(event, now_ns - step_began_ns)
        deadline_ms = self.node.deadline_ms()
        if deadline_ms is not None and (self._timer is None or deadline_ms < self._timer_ms):
            self._arm(deadline_ms)

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._clock.now_ms())
        self._timer = self._loop.call_later(delay_ms / 1000, self._deadline)

    def _deadline(self) -> None:
        self._timer = None
        self._step(DeadlineReached())

    def answer_failed(self, call: Call, error: Exception) -> None:
        """Have the node refuse a call whose answer could not be read or written."""
        self._loop.call_soon(self._step, AnswerNotWritten(call, error))

    # -- effects

    def _take_turn(self, _: client_effects.TakeClientTurn) -> None:
        self._loop.call_soon(self._step, TurnCame())

    def _look_up_times(self, effect: client_effects.LookUpTimes) -> None:
        found: list[tuple[int, int] | None] = []
        try:
            for time_ms in effect.times_ms:
                if time_ms is None:
                    found.append(max_timestamp(self._log, effect.end_offset))
                else:
                    found.append(offset_for_timestamp(self._log, time_ms, effect.end_offset))
        except StorageFailure:
            raise
        except Exception as error:
            self.answer_failed(effect.call, error)
        else:
            self._loop.call_soon(self._step, client_effects.TimesLookedUp(effect.call, found))

    def _ask(self, effect: client_effects.Ask) -> None:
        to, outbound = effect.destination, self.outbounds.get(effect.listener)
        if outbound is None:
            self._loop.call_soon(self._step, client_effects.Answered(effect.ask_id, None))
        else:
            outbound.send(effect.ask_id, Address(to.node_id, to.host, to.port), effect.message)

    def _hand_over(self, effect: client_effects.HandToController) -> None:
        self._loop.call_soon(self._step_controller, CallHandedOver(effect.call))

    # -- answers of other nodes

    def answered(self, tag: Hashable, message: Message) -> None:
        self._step(client_effects.Answered(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._step(client_effects.Answered(tag, None))  # type: ignore[arg-type]

    def lost(self, address: Address, reason: str) -> None: ...

    def silent(self, address: Address) -> None: ...

    def __repr__(self) -> str:
        return f"<ClientSide on {', '.join(sorted(self.listeners))}: {self.node!r}>"
