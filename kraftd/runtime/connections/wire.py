"""The connections of a daemon: puts answers into their slots, and flushes each connection once a step."""

from __future__ import annotations

from typing import Any

from kraftd.net.connection import Connection
from kraftd.raft.effects import Send
from kraftd.replica.effects import SendToController
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer
from kraftd.requests.events import FramesReceived
from kraftd.runtime.peers.sending import ControllerPeer, QuorumPeers

DISK_FULL = "the disk is full"


class ConnectionWire:
    """The connections as one node sees them; those of `shared` if another node of the process has them too.

    `answered_calls` are the node's calls answered since it was last cleared.
    """

    def __init__(self, shared: ConnectionWire | None = None) -> None:
        self.by_id: dict[int, Connection] = {} if shared is None else shared.by_id
        self.answered_calls: list[Call] = []
        self._dirty: dict[Connection, None] = {} if shared is None else shared._dirty  # in order

    def answer(self, effect: Answer) -> None:
        connection = self.by_id.get(effect.connection_id)
        if connection is not None:
            connection.answer(effect.slot, effect.parts)
            self._dirty[connection] = None
        if effect.call is not None:
            self.answered_calls.append(effect.call)

    def respond(self, call: Call, parts: list[Any]) -> None:
        self.answered_calls.append(call)
        connection = self.by_id.get(call.connection_id)
        if connection is not None:
            connection.answer(call.slot, parts)
            self._dirty[connection] = None

    def close(self, connection_id: int, reason: str) -> None:
        connection = self.by_id.get(connection_id)
        if connection is not None:
            connection.close(reason)

    def mute(self, connection_id: int, is_muted: bool) -> None:
        connection = self.by_id.get(connection_id)
        if connection is not None:
            connection.mute(is_muted)

    def is_open(self, connection_id: int) -> bool:
        return connection_id in self.by_id

    def refuse_request(self, event: Any) -> bool:
        if type(event) is not FramesReceived:
            return False
        self.close(event.connection_id, DISK_FULL)
        return True

    def flush(self) -> None:
        if self._dirty:
            dirty = list(self._dirty)
            self._dirty.clear()
            for connection in dirty:
                connection.flush()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self.by_id)} connections>"


class ControllerWire(ConnectionWire):
    """See `kraftd.host.ports.NodeWire`: also the controller's ways to its peers."""

    def __init__(self) -> None:
        super().__init__()
        self.quorum: QuorumPeers
        self.controller: ControllerPeer

    def send(self, effect: Send) -> None:
        self.quorum.send(effect)

    def send_to_controller(self, effect: SendToController) -> None:
        self.controller.send(effect)
