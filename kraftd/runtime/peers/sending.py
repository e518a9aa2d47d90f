"""Sends the node's own requests: raft's to the other controllers, the registration to the active one.

It uses two client ids, as Kafka's controllers do: `raft-client-N` for the quorum, `N` for requests to the
active controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.named_tuple import NamedTuple
from kraftd.net.link import Link
from kraftd.net.outbound import Failure, Outbound, Timer, Times, Wiring
from kraftd.net.tls.source import TlsSource
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.replica.effects import SendToController
from kraftd.replica.events import ControllerAnswered
from kraftd.runtime.clock import Clock
from kraftd.security.sasl.mechanism import ClientExchange
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

SOFTWARE = ("kraftd", "1")
_ERRORS = {
    Failure.UNREACHABLE: ErrorCode.BROKER_NOT_AVAILABLE,
    Failure.TIMED_OUT: ErrorCode.BROKER_NOT_AVAILABLE,
    Failure.UNSUPPORTED: ErrorCode.UNSUPPORTED_VERSION,
}

Step = Callable[[Any], None]
NewLogin = Callable[[], ClientExchange] | None


class Road(NamedTuple):
    """How connections to other nodes are opened and authenticated."""

    wiring: Wiring
    login: Callable[[], ClientExchange] | None = None


class LoopWiring:
    """Connections and timers of an asyncio loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        tls: TlsSource | None = None,
        handshake_timeout_ms: int = 10_000,
    ) -> None:
        """With `tls`, each connection gets the context that is current when it is opened."""
        self._loop = loop
        self._tls = tls
        self._handshake_timeout_ms = handshake_timeout_ms
        self._opening: set[asyncio.Task[None]] = set()
        self.now_ms = clock.now_ms
        self.call_soon = loop.call_soon

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, function)

    def open(self, address: Destination, link: Link) -> None:
        task = self._loop.create_task(self._open(address, link))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, address: Destination, link: Link) -> None:
        try:
            tls: dict[str, Any] = {}
            if self._tls is not None:
                tls["ssl"] = self._tls.client
                tls["server_hostname"] = address.host
                tls["ssl_handshake_timeout"] = self._handshake_timeout_ms / 1000
            await self._loop.create_connection(lambda: link, address.host, address.port, **tls)  # type: ignore[type-var]
        except OSError as error:
            link.not_opened(getattr(error, "verify_message", None) or error.strerror or str(error))

    def stop(self) -> None:
        """Open no more connections."""
        for task in list(self._opening):
            task.cancel()


class QuorumPeers:
    """Performs Send; its results are the events ResponseReceived (to `received`), SendFailed and
    ConnectionLost.
    """

    def __init__(
        self,
        node_id: int,
        wiring: LoopWiring,
        times: Times,
        step: Step,
        received: Step,
        log: Any,
        troubles: PeerTroubles,
        login: NewLogin = None,
    ) -> None:
        self.outbound = Outbound(f"raft-client-{node_id}", SOFTWARE, self, wiring, times, login)
        self._step = step
        self._received = received
        self._log = log
        self._last: dict[int, Destination] = {}  # the last address of each node
        self._in_flight: dict[Hashable, Destination] = {}  # by the tag of each request that is under way
        self._troubles = troubles
        # Gets the address of a node in a cluster whose id is not known yet.
        self.on_foreign_node: Callable[[Destination], None] = lambda _: None

    def send(self, effect: raft_effects.Send) -> None:
        to = effect.destination
        self._last[to.node_id] = self._in_flight[effect.send_id] = to
        self.outbound.send(effect.send_id, to, effect.message)

    def answered(self, tag: Hashable, message: Message) -> None:
        address = self._in_flight.pop(tag)
        self._troubles.answered(address.node_id, _at(address), message, self.outbound.served(address))
        if self._troubles.lacks_cluster_of(_at(address)):
            self.on_foreign_node(address)
        self._received(raft_events.ResponseReceived(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._in_flight.pop(tag, None)
        self._step(raft_events.SendFailed(tag, _ERRORS[failure]))  # type: ignore[arg-type]

    def silent(self, address: Destination, reason: str) -> None:
        self._troubles.unreachable(address.node_id, _at(address), reason)

    def lost(self, address: Destination, reason: str) -> None:
        self._log.debug("connection lost", node=address.node_id, at=_at(address), reason=reason)
        self._troubles.unreachable(address.node_id, _at(address), reason)
        if self._last[address.node_id] == address:  # the loss of a connection to an old address means nothing
            self._step(raft_events.ConnectionLost(address.node_id))


class ControllerPeer:
    """Performs SendToController; the answer, or its absence, is the event ControllerAnswered."""

    def __init__(
        self, node_id: int, wiring: LoopWiring, times: Times, step: Step, login: NewLogin = None
    ) -> None:
        self.outbound = Outbound(str(node_id), SOFTWARE, self, wiring, times, login)
        self._step = step

    def send(self, effect: SendToController) -> None:
        self.outbound.send(effect.request_id, effect.destination, effect.message)

    def answered(self, tag: Hashable, message: Message) -> None:
        self._step(ControllerAnswered(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._step(ControllerAnswered(tag, None))  # type: ignore[arg-type]

    def lost(self, address: Destination, reason: str) -> None: ...

    def silent(self, address: Destination, reason: str) -> None: ...


def _at(address: Destination) -> str:
    return f"{address.host}:{address.port}"
