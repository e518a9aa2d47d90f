"""Requests among the brokers of a world, over connections that keep the order of their messages.

A client id of a broker has one connection to another broker. A request into a cut, or to a host without
power, gets no answer: the connection is closed after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kraftd.answers.effects import Answered, SendToNode
from kraftd.simulation.protocols import Process, World
from kraftd.simulation.schedule import SECOND
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.table import api_key

if TYPE_CHECKING:
    from kraftd.simulation.brokers.broker_side import BrokerSide

PATIENCE_US = 3 * SECOND
VERSIONS = {
    2: 10,
    24: 5,
    27: 2,
    83: 0,
    84: 0,
    85: 1,
    86: 0,
    87: 1,
}  # of requests that name no version, by API key


class PeerConnection:
    """A connection of a broker to another one. `waiting`: each request, its API key and version, by slot."""

    __slots__ = ("arrival_us", "id", "is_open", "return_us", "source", "target", "waiting")

    def __init__(self, number: int, source: Process, target: Process) -> None:
        self.id = number
        self.source = source
        self.target = target
        self.is_open = True
        self.arrival_us = self.return_us = 0
        self.waiting: dict[int, tuple[SendToNode, int, int]] = {}  # the request, its API key and version

    def __repr__(self) -> str:
        return f"<PeerConnection {self.id} of {self.source.id} to {self.target.id}>"


class Peers:
    """See the module. `traffic` numbers connections and slots."""

    def __init__(self, world: World, traffic: Any) -> None:
        self.world = world
        self._traffic = traffic
        self._connections: dict[tuple[Process, int, str], PeerConnection] = {}
        self._by_slot: dict[int, PeerConnection] = {}

    def __repr__(self) -> str:
        return f"<Peers, {len(self._by_slot)} requests under way>"

    def send(self, process: Process, effect: SendToNode) -> None:
        """Carry a request of a broker to another; Answered comes back."""
        network = self.world.network
        host = self.world.cluster.hosts.get(effect.destination.node_id)
        if host is None or not effect.destination.host or (host.process is None and not host.is_off):
            self._answer_later(process, effect.request_id)
            return
        key = process, host.id, effect.client_id
        connection = self._connections.get(key)
        if connection is None or not connection.is_open or connection.target is not host.process:
            is_cut = (process.id, host.id) in network.cut or (host.id, process.id) in network.cut
            if is_cut or host.process is None:
                self.world.schedule.after(PATIENCE_US, self._answer_later, process, effect.request_id)
                return
            connection = PeerConnection(self._traffic.new_number(), process, host.process)
            self._connections[key] = connection
        slot, api = self._traffic.new_number(), api_key(effect.message)
        version = VERSIONS[api] if effect.version is None else effect.version
        parts = encode_request(api, version, slot & 0x7FFFFFFF, effect.client_id, effect.message)
        connection.waiting[slot] = effect, api, version
        self._by_slot[slot] = connection
        schedule = self.world.schedule
        schedule.after(PATIENCE_US, self._expire, slot)
        if not network.loses():
            frame = memoryview(b"".join(parts))[4:]
            connection.arrival_us = max(connection.arrival_us + 1, schedule.now_us + network.draw_delay_us())
            schedule.at(connection.arrival_us, self._arrive, connection, slot, frame)

    def answered(self, slot: int, parts: list[Any]) -> bool:
        """Carry an answer back; return whether the slot is of a broker's request."""
        connection = self._by_slot.get(slot)
        if connection is None:
            return False
        network, schedule = self.world.network, self.world.schedule
        if connection.is_open and not network.loses():
            data = b"".join(parts)
            connection.return_us = max(connection.return_us + 1, schedule.now_us + network.draw_delay_us())
            schedule.at(connection.return_us, self._return, connection, slot, data)
        return True

    def process_ended(self, process: Process, *, silent: bool) -> None:
        """Close the connections of a process; a host without power closes none."""
        for connection in list(self._connections.values()):
            if connection.is_open and connection.source is process:
                self._close(connection)
            elif connection.is_open and connection.target is process and not silent:
                is_cut = (process.id, connection.source.id) in self.world.network.cut
                if not is_cut:
                    self._close(connection)

    def _arrive(self, connection: PeerConnection, slot: int, frame: memoryview) -> None:
        source, target = connection.source, connection.target
        if not connection.is_open or target.ended:
            return
        if self.world.network.is_held_back(source.id, target.id, self._arrive, connection, slot, frame):
            return
        side: BrokerSide = target.broker
        side.receive(connection.id, slot, [frame])

    def _return(self, connection: PeerConnection, slot: int, data: bytes) -> None:
        source, target = connection.source, connection.target
        if not connection.is_open or slot not in connection.waiting:
            return
        if self.world.network.is_held_back(target.id, source.id, self._return, connection, slot, data):
            return
        effect, api, version = connection.waiting.pop(slot)
        del self._by_slot[slot]
        self._deliver(source, effect, api, version, memoryview(data)[4:])

    def _deliver(
        self, source: Process, effect: SendToNode, api: int, version: int, frame: memoryview
    ) -> None:
        """Let a broker take an answer as it came, or by a step. A request may follow at once."""
        if source.asleep(self._deliver, source, effect, api, version, frame):
            return
        request_id, broker, followed = effect.request_id, source.broker, list[Any]()
        source.guarded(lambda: followed.append(broker.follow(request_id, version, frame)))
        following = followed[0] if followed else True  # it crashed
        if following is False:
            broker.deliver(Answered(request_id, parse_response(api, version, frame)[1]))
        elif following is not True:
            self.send(source, replace(effect, message=following))

    def _expire(self, slot: int) -> None:
        connection = self._by_slot.get(slot)
        if connection is not None:
            self._close(connection)

    def _close(self, connection: PeerConnection) -> None:
        connection.is_open = False
        waiting, connection.waiting = connection.waiting, {}
        for slot, (effect, _, _) in waiting.items():
            del self._by_slot[slot]
            self._answer_later(connection.source, effect.request_id)
        if not connection.target.ended:
            connection.target.broker.close_connection(connection.id)

    def _answer_later(self, process: Process, request_id: int) -> None:
        """Let a request have no answer."""
        if not process.ended:
            delay_us = self.world.network.draw_delay_us()
            self.world.schedule.after(delay_us, process.broker.deliver, Answered(request_id, None))
