"""What a broker asks other nodes for itself, and is answered once. A request to the active controller is sent
once there is one; another node is asked once.

As in Kafka, a slow controller answers heartbeats although changes of ISRs wait: each has its own connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kraftd.answers.effects import SendToNode
from kraftd.answers.view import ClusterView
from kraftd.ground.destination import Destination
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kraftd.metadata.state import BrokerState
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.broker_node.fetching.steady_rounds import SteadyRounds

RETRY_MS = 50  # until another look for the active controller
FIRST_ID = -2  # counting down: -1 is the lifecycle's, and those of calls count from 1

NOWHERE = Destination(-1, "", 0)  # a request to there gets no answer

# The channels to the controller by what they carry, as Kafka names them. Other requests go the way of those
# that are forwarded for clients, which has no name here.
HEARTBEATS = "heartbeat"
CHANNELS: dict[type[Message], str] = {
    AlterPartitionRequest: "alter-partition",
    AssignReplicasToDirsRequest: "directory-assignments",
}

Then = Callable[[Message | None], None]


class OwnRequest(Struct):
    """A request that is not answered yet. Without `until_ms` it is sent once."""

    message: Message
    then: Then
    until_ms: int | None = None
    rounds: SteadyRounds | None = None  # that may take the answer

    def __repr__(self) -> str:
        return f"<OwnRequest {type(self.message).__name__}>"


class OwnRequests:
    """Requests that are under way, or wait. `then` gets the answer, or None without one in time."""

    def __init__(self, view: ClusterView, outbox: Outbox, timeout_ms: int) -> None:
        self._view = view
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        self._waiting: list[OwnRequest] = []
        self._under_way: dict[int, OwnRequest] = {}
        self._next_id = FIRST_ID
        self._retry_ms: int | None = None
        self._ways: dict[tuple[int, str, str], tuple[BrokerState | None, Destination, str]] = {}

    def __repr__(self) -> str:
        return f"<OwnRequests {len(self._waiting)} wait, {len(self._under_way)} under way>"

    def send(self, message: Message, then: Then, now_ms: int) -> None:
        """Ask the active controller, now or once it is known."""
        self._try(OwnRequest(message, then, now_ms + self._timeout_ms), now_ms)

    def ask_node(
        self,
        broker_id: int,
        listener: str,
        purpose: str,
        message: Message,
        version: int | None,
        then: Then,
        rounds: SteadyRounds | None = None,
    ) -> None:
        """Ask another broker at a listener, at most in a version; each purpose has a connection of its own.

        A broker that is not known gives no answer. `then` is called in a later step.
        """
        broker = self._view.image.brokers.get(broker_id)
        way = self._ways.get((broker_id, listener, purpose))
        if way is None or way[0] is not broker:
            endpoint = None if broker is None else broker.listener(listener)
            to = NOWHERE if endpoint is None else Destination(broker_id, endpoint.host, endpoint.port)
            way = broker, to, f"broker-{self._view.node_id}-{purpose}"
            self._ways[broker_id, listener, purpose] = way
        self._emit(OwnRequest(message, then, None, rounds), way[1], listener, way[2], version)

    def rounds(self, request_id: int) -> SteadyRounds | None:
        """The rounds that may take the answer to a request and let another one follow, under the same id."""
        request = self._under_way.get(request_id)
        return None if request is None else request.rounds

    def forget(self, request_id: int) -> None:
        """Forget a request whose answer was taken, and that none follows."""
        self._under_way.pop(request_id, None)

    def answered(self, request_id: int, message: Message | None, now_ms: int) -> bool:
        """Handle an answer; return whether it is to one of these requests."""
        request = self._under_way.pop(request_id, None)
        if request is None:
            return request_id <= FIRST_ID
        if request.until_ms is None:
            request.then(message)
        elif message is None or getattr(message, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._wait(request, now_ms)
        else:
            request.then(message)
        return True

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return self._retry_ms

    def run_due(self, now_ms: int) -> None:
        """Look for the controller again."""
        if self._retry_ms is None or self._retry_ms > now_ms:
            return
        self._retry_ms = None
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if request.until_ms is not None and request.until_ms <= now_ms:
                request.then(None)
            else:
                self._try(request, now_ms)

    def _try(self, request: OwnRequest, now_ms: int) -> None:
        destination = self._view.controller_destination()
        if destination is None:
            self._wait(request, now_ms)
            return
        self._emit(request, destination, channel=CHANNELS.get(type(request.message), ""))

    def _emit(
        self,
        request: OwnRequest,
        destination: Destination,
        listener: str = "",
        client_id: str = "",
        version: int | None = None,
        channel: str = "",
    ) -> None:
        self._under_way[self._next_id] = request
        self._outbox.effects.append(
            SendToNode(self._next_id, destination, request.message, listener, client_id, version, channel)
        )
        self._next_id -= 1

    def _wait(self, request: OwnRequest, now_ms: int) -> None:
        self._waiting.append(request)
        if self._retry_ms is None:
            self._retry_ms = now_ms + RETRY_MS
