"""What a broker asks the active controller for itself: each request is sent once there is one, and answered
once.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.answers.effects import SendToNode
from kraftd.answers.view import ClusterView
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

RETRY_MS = 50  # until another look for the active controller
FIRST_ID = -2  # counting down: -1 is the lifecycle's, and those of calls count from 1

Then = Callable[[Message | None], None]


class OwnRequest:
    """A request that is not answered yet."""

    __slots__ = ("message", "then", "until_ms")

    def __init__(self, message: Message, then: Then, until_ms: int) -> None:
        self.message = message
        self.then = then
        self.until_ms = until_ms

    def __repr__(self) -> str:
        return f"<OwnRequest {type(self.message).__name__}>"


class OwnRequests:
    """Requests to the active controller. `then` gets the answer, or None without one in time."""

    def __init__(self, view: ClusterView, outbox: Outbox, timeout_ms: int) -> None:
        self._view = view
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        self._waiting: list[OwnRequest] = []
        self._under_way: dict[int, OwnRequest] = {}
        self._next_id = FIRST_ID
        self._retry_ms: int | None = None

    def __repr__(self) -> str:
        return f"<OwnRequests {len(self._waiting)} wait, {len(self._under_way)} under way>"

    def send(self, message: Message, then: Then, now_ms: int) -> None:
        """Ask the active controller, now or once it is known."""
        self._try(OwnRequest(message, then, now_ms + self._timeout_ms), now_ms)

    def answered(self, request_id: int, message: Message | None, now_ms: int) -> bool:
        """Handle an answer; return whether it is to one of these requests."""
        request = self._under_way.pop(request_id, None)
        if request is None:
            return request_id <= FIRST_ID
        if message is None or getattr(message, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
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
            if request.until_ms <= now_ms:
                request.then(None)
            else:
                self._try(request, now_ms)

    def _try(self, request: OwnRequest, now_ms: int) -> None:
        destination = self._view.controller_destination()
        if destination is None:
            self._wait(request, now_ms)
            return
        self._under_way[self._next_id] = request
        self._outbox.emit(SendToNode(self._next_id, destination, request.message))
        self._next_id -= 1

    def _wait(self, request: OwnRequest, now_ms: int) -> None:
        self._waiting.append(request)
        if self._retry_ms is None:
            self._retry_ms = now_ms + RETRY_MS
