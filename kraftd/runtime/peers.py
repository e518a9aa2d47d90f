"""The node's own requests performed for real: raft to the other controllers, registration to the active one.

Two client ids, as Kafka's controllers have: `raft-client-N` for the quorum, `N` for what goes to the active
controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from kraftd.net.outbound import Address, Failure, Link, Outbound, Timer, Times
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.runtime.clock import Clock
from kraftd.server.registration import AskController, ControllerAnswered
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

SOFTWARE = ("kraftd", "1")
_ERRORS = {
    Failure.UNREACHABLE: ErrorCode.BROKER_NOT_AVAILABLE,
    Failure.TIMED_OUT: ErrorCode.BROKER_NOT_AVAILABLE,
    Failure.UNSUPPORTED: ErrorCode.UNSUPPORTED_VERSION,
}

Step = Callable[[Any], None]


class LoopWiring:
    """Connections and timers of an asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._opening: set[asyncio.Task[None]] = set()
        self.now_ms = clock.now_ms
        self.call_soon = loop.call_soon

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, function)

    def open(self, address: Address, link: Link) -> None:
        task = self._loop.create_task(self._open(address, link))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, address: Address, link: Link) -> None:
        try:
            await self._loop.create_connection(lambda: link, address.host, address.port)  # type: ignore[type-var]
        except OSError as error:
            link.not_opened(error.strerror or str(error))

    def stop(self) -> None:
        """Open nothing more."""
        for task in list(self._opening):
            task.cancel()


class QuorumPeers:
    """Performs Send; what comes of it goes back as ResponseReceived (to `received`), SendFailed and
    ConnectionLost."""

    def __init__(
        self, node_id: int, wiring: LoopWiring, times: Times, step: Step, received: Step, log: Any
    ) -> None:
        self.outbound = Outbound(f"raft-client-{node_id}", SOFTWARE, self, wiring, times)
        self._step = step
        self._received = received
        self._log = log
        self._last: dict[int, Address] = {}  # where each node was asked last

    def send(self, effect: raft_effects.Send) -> None:
        to = effect.destination
        address = self._last[to.node_id] = Address(to.node_id, to.host, to.port)
        self.outbound.send(effect.send_id, address, effect.message)

    def answered(self, tag: Hashable, message: Message) -> None:
        self._received(raft_events.ResponseReceived(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._step(raft_events.SendFailed(tag, _ERRORS[failure]))  # type: ignore[arg-type]

    def lost(self, address: Address, reason: str) -> None:
        self._log.debug(
            "connection lost", node=address.node_id, at=f"{address.host}:{address.port}", reason=reason
        )
        if self._last[address.node_id] == address:  # the end of one that is used no more means nothing
            self._step(raft_events.ConnectionLost(address.node_id))


class ControllerPeer:
    """Performs AskController; the answer, or that there is none, goes back as ControllerAnswered."""

    def __init__(self, node_id: int, wiring: LoopWiring, times: Times, step: Step) -> None:
        self.outbound = Outbound(str(node_id), SOFTWARE, self, wiring, times)
        self._step = step

    def send(self, effect: AskController) -> None:
        to = effect.destination
        self.outbound.send(effect.ask_id, Address(to.node_id, to.host, to.port), effect.message)

    def answered(self, tag: Hashable, message: Message) -> None:
        self._step(ControllerAnswered(tag, message))  # type: ignore[arg-type]

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._step(ControllerAnswered(tag, None))  # type: ignore[arg-type]

    def lost(self, address: Address, reason: str) -> None: ...
