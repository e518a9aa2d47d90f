"""The network: connections between processes, and the faults of their messages.

A connection keeps the order of its messages; messages of different connections have no order. A message into
a cut is lost, or kept until the cut heals (as with TCP). Real codecs encode every message in a version that
both sides know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.raft.effects import Send
from kraftd.raft.events import ConnectionLost, RequestReceived, ResponseReceived, SendFailed
from kraftd.simulation.processes.files import LISTENER
from kraftd.simulation.protocols import Process, World
from kraftd.simulation.schedule import SECOND
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import UnsupportedFieldError
from kraftd.wire.message import Message

Address = tuple[str, int]

SLOWEST_US = 2 * SECOND


class Link:
    """A connection that a process made to another."""

    __slots__ = ("arrival_us", "node_id", "open", "return_us", "source", "target", "waiting")

    def __init__(self, source: Process, target: Process, node_id: int) -> None:
        self.source = source
        self.target = target
        self.node_id = node_id  # the source's id of the target; -2 and below for a bootstrap server
        self.open = True
        self.arrival_us = 0
        self.return_us = 0
        self.waiting: dict[Request, None] = {}  # sent, not answered; in order

    def __repr__(self) -> str:
        return f"<Link {self.source.id} to {self.target.id}{'' if self.open else ', closed'}>"


class Request:
    """One request on its way; it is its own request id at the core that answers it."""

    __slots__ = ("answered", "link", "message", "parked", "send_id", "version")

    def __init__(self, link: Link, send_id: int, message: Message, version: int) -> None:
        self.link = link
        self.send_id = send_id
        self.message = message
        self.version = version
        self.answered = 0
        self.parked = False

    def __repr__(self) -> str:
        return f"{self.link.source.id}.{self.send_id}"


class Network:
    """Everything between the hosts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.schedule = world.schedule
        options = world.options
        self.rng = world.rng("network")
        self.loss = options.loss
        self.duplication = options.duplication
        self.slow_chance = options.slow_chance
        self.delay_us = options.delay_us
        self.keeps_cut_messages = options.keeps_cut_messages
        self.cut: set[tuple[int, int]] = set()  # host ids, from and to
        self.hosts: dict[Address, int] = {}  # which process listens where
        self.messages = 0
        self._kept: list[tuple[Any, ...]] = []

    # --- faults ---

    def heal(self) -> None:
        """Remove all cuts; kept messages arrive, in any order."""
        self.cut.clear()
        kept, self._kept = self._kept, []
        self.rng.shuffle(kept)
        for action, *arguments in kept:
            self.schedule.after(self.draw_delay_us(), action, *arguments)

    def be_calm(self) -> None:
        self.heal()
        self.loss = self.duplication = self.slow_chance = 0.0
        self.delay_us = (100, 500)

    def reset(self, link: Link) -> None:
        """Notify both ends that the connection is broken; messages on their way are lost."""
        if link.open:
            link.open = False
            self.schedule.after(self.draw_delay_us(), self._notify_target, link)
            self.schedule.after(self.draw_delay_us(), self._notify_source, link)

    def process_ended(self, process: Process, *, silent: bool) -> None:
        """Close the connections of a process that ended, as the kernel does; a host without power sends
        nothing.
        """
        for link in process.links.values():
            if link.open and not silent:
                link.open = False
                self.schedule.after(self.draw_delay_us(), self._notify_target, link)
        if not silent:
            for link in process.incoming:
                if link.open and (process.id, link.source.id) not in self.cut:
                    self.reset(link)

    # --- messages ---

    def send(self, process: Process, effect: Send) -> None:
        """Carry a request; the sender gets the result as an event."""
        self.messages += 1
        to = effect.destination
        target_id = self.hosts.get((to.host, to.port))
        link = process.links.get(to)
        if link is None or not link.open:
            if target_id is None:
                self._refuse(process, effect.send_id, to)
                return
            host = self.world.cluster.hosts[target_id]
            if (process.id, target_id) in self.cut or (target_id, process.id) in self.cut or host.is_off:
                return  # the attempt to connect is never answered
            if host.process is None:
                self._refuse(process, effect.send_id, to)
                return
            link = process.links[to] = Link(process, host.process, to.node_id)
            host.process.incoming.append(link)
        target = link.target
        if target.ended:
            host = self.world.cluster.hosts[target.id]
            if (
                not host.is_off
                and (process.id, target.id) not in self.cut
                and (target.id, process.id) not in self.cut
            ):
                link.open = False
                self._refuse(process, effect.send_id, to)
            return
        name = type(effect.message).__name__
        version = min(process.speaks[name], target.speaks[name])
        try:
            data = encode_bytes(effect.message, version)
        except UnsupportedFieldError:
            self.schedule.after(1, process.deliver, SendFailed(effect.send_id, ErrorCode.UNSUPPORTED_VERSION))
            return
        request = Request(link, effect.send_id, effect.message, version)
        link.waiting[request] = None
        rng = self.rng
        if self.loses():
            return
        link.arrival_us = max(link.arrival_us + 1, self.schedule.now_us + self.draw_delay_us())
        self.schedule.at(link.arrival_us, self._arrive, request, data)
        if self.duplication and rng.chance(self.duplication):
            again = Request(link, effect.send_id, effect.message, version)
            self.schedule.after(self.draw_delay_us() * 4, self._arrive, again, data)

    def answer(self, process: Process, request: Request, message: Message) -> None:
        """Carry an answer back."""
        self.messages += 1
        link = request.link
        data = encode_bytes(message, request.version)
        if not link.open or self.loses():
            return
        link.return_us = max(link.return_us + 1, self.schedule.now_us + self.draw_delay_us())
        self.schedule.at(link.return_us, self._return, request, type(message), data)

    def loses(self) -> bool:
        """Draw whether a message is lost."""
        return bool(self.loss) and self.rng.chance(self.loss)

    def is_held_back(self, source: int, target: int, arrive: Callable[..., None], *arguments: Any) -> bool:
        """Return whether a cut between two hosts stops a message. It may arrive when the cut heals."""
        if (source, target) not in self.cut:
            return False
        if self.keeps_cut_messages:
            self._kept.append((arrive, *arguments))
        return True

    def draw_delay_us(self) -> int:
        """How long a message is under way."""
        low, high = self.delay_us
        rng = self.rng
        if self.slow_chance and rng.chance(self.slow_chance):
            return min(rng.between(low, high) * 100, SLOWEST_US)
        return rng.between(low, high)

    def _arrive(self, request: Request, data: bytes) -> None:
        link = request.link
        target = link.target
        if not link.open or target.ended:
            return
        if self.is_held_back(link.source.id, target.id, self._arrive, request, data):
            return
        message = decode(type(request.message), request.version, memoryview(data))
        target.deliver(RequestReceived(request, message, request.version, LISTENER))

    def _return(self, request: Request, kind: type[Message], data: bytes) -> None:
        link = request.link
        source = link.source
        link.waiting.pop(request, None)
        if not link.open or source.ended:
            return
        if self.is_held_back(link.target.id, source.id, self._return, request, kind, data):
            return
        source.deliver(ResponseReceived(request.send_id, decode(kind, request.version, memoryview(data))))

    def _refuse(self, process: Process, send_id: int, to: Destination) -> None:
        self.schedule.after(self.draw_delay_us(), process.deliver, SendFailed(send_id))
        if to.node_id >= 0:
            self.schedule.after(self.draw_delay_us(), process.deliver, ConnectionLost(to.node_id))

    def _notify_source(self, link: Link) -> None:
        for request in link.waiting:
            link.source.deliver(SendFailed(request.send_id))
        link.waiting.clear()
        if link.node_id >= 0:
            link.source.deliver(ConnectionLost(link.node_id))

    def _notify_target(self, link: Link) -> None:
        link.target.link_closed(link)

    def __repr__(self) -> str:
        return f"<Network {self.messages} messages, {len(self.cut)} cuts, {len(self._kept)} kept>"
