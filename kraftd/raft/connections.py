"""Decides which node may get a request now: one is in flight per node, with a timeout, and failures cause a
backoff.

Kafka's request manager, with the time as an argument. Ids are node ids; bootstrap servers of unknown id have
-2 and below.
"""

from __future__ import annotations

from enum import Enum

from kraftd.ground.destination import Destination
from kraftd.wire.message import Message


class _Phase(Enum):
    IN_FLIGHT = "in flight"
    BACKING_OFF = "backing off"


class _Connection:
    __slots__ = ("phase", "send_id", "until_ms")

    def __init__(self, phase: _Phase, until_ms: int, send_id: int) -> None:
        self.phase = phase
        self.until_ms = until_ms
        self.send_id = send_id


class Sent:
    """A request in flight."""

    __slots__ = ("destination", "message")

    def __init__(self, destination: Destination, message: Message) -> None:
        self.destination = destination
        self.message = message

    def __repr__(self) -> str:
        return f"<Sent {type(self.message).__name__} to {self.destination}>"


class Connections:
    """Every connection that has a request in flight or is backing off; all others are ready."""

    __slots__ = ("_by_node", "_last_send_id", "_sent", "request_timeout_ms", "retry_backoff_ms")

    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self.request_timeout_ms = request_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self._by_node: dict[int, _Connection] = {}
        self._sent: dict[int, Sent] = {}
        self._last_send_id = 0

    def __repr__(self) -> str:
        states = " ".join(f"{node}:{one.phase.value}" for node, one in self._by_node.items())
        return f"<Connections {states or 'all ready'}>"

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        connection = self._by_node.get(node_id)
        if connection is None:
            return True
        if now_ms >= connection.until_ms:
            self.reset(node_id)
            return True
        return False

    def is_backing_off(self, node_id: int, now_ms: int) -> bool:
        connection = self._by_node.get(node_id)
        return (
            connection is not None and connection.phase is _Phase.BACKING_OFF and now_ms < connection.until_ms
        )

    def has_timed_out(self, node_id: int, now_ms: int) -> bool:
        connection = self._by_node.get(node_id)
        return (
            connection is not None and connection.phase is _Phase.IN_FLIGHT and now_ms >= connection.until_ms
        )

    def any_in_flight(self, now_ms: int) -> bool:
        """Return whether any request still waits for its answer and has not timed out."""
        return any(one.phase is _Phase.IN_FLIGHT and now_ms < one.until_ms for one in self._by_node.values())

    def sent(self, destination: Destination, message: Message, now_ms: int) -> int:
        """Record a request as sent; returns its send id."""
        self.reset(destination.node_id)
        self._last_send_id += 1
        send_id = self._last_send_id
        until_ms = now_ms + self.request_timeout_ms
        self._by_node[destination.node_id] = _Connection(_Phase.IN_FLIGHT, until_ms, send_id)
        self._sent[send_id] = Sent(destination, message)
        return send_id

    def answered(self, send_id: int) -> Sent | None:
        """Make the connection ready again and return the request that this answers; None if the answer no
        longer matters.
        """
        sent = self._sent.get(send_id)
        if sent is not None:
            self.reset(sent.destination.node_id)
        return sent

    def back_off(self, node_id: int, now_ms: int) -> None:
        self.reset(node_id)
        self._by_node[node_id] = _Connection(_Phase.BACKING_OFF, now_ms + self.retry_backoff_ms, 0)

    def reset(self, node_id: int) -> None:
        """Forget what is in flight to that node; its answer will be ignored."""
        connection = self._by_node.pop(node_id, None)
        if connection is not None:
            self._sent.pop(connection.send_id, None)

    def reset_all(self) -> None:
        """Forget all requests: in a new state, answers to the last state's requests do not count."""
        self._by_node.clear()
        self._sent.clear()

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When the next connection becomes ready again by a timeout."""
        earliest_ms: int | None = None
        for one in self._by_node.values():
            if one.until_ms > now_ms and (earliest_ms is None or one.until_ms < earliest_ms):
                earliest_ms = one.until_ms
        return earliest_ms
