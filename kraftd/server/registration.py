"""This run of the node registered with the active controller, wherever that is (KIP-919).

Every controller, voter or not, sends ControllerRegistration once a start, and again until the record of it is
in its own image. The active controller writes its own itself, when it becomes it (`activation`) and when
another incarnation's has taken its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.controllers import register_controller
from kraftd.controller.decision import Refusal
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import allows_controller_registration
from kraftd.raft.effects import Destination
from kraftd.raft.events import Event
from kraftd.server.effects import Effect
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.server.node import Node

FIRST_BACKOFF_MS = 100
LONGEST_BACKOFF_MS = 60_000
UNTIL_SEEN_MS = 5_000  # an accepted registration whose record does not come by then is sent again


class AskController(Effect, frozen=True, gc=False):
    """Ask the active controller, as this node rather than as its raft client; ControllerAnswered comes
    back."""

    ask_id: int
    destination: Destination
    message: Message

    def __repr__(self) -> str:
        return f"<AskController {self.ask_id} {type(self.message).__name__} to {self.destination}>"


class ControllerAnswered(Event, frozen=True, gc=False):
    """The answer to an AskController; None when there is none."""

    ask_id: int
    message: Message | None


def registration_request(node: Node) -> ControllerRegistrationRequest:
    """What this node tells of itself."""
    identity = node.identity
    supported = supported_features(unstable=node.context.settings.unstable_features)
    return ControllerRegistrationRequest(
        controller_id=identity.node_id,
        incarnation_id=identity.incarnation_id,
        listeners=[
            Listener(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in identity.endpoints
        ],
        features=[Feature(name, low, high) for name, (low, high) in supported.items()],
    )


def is_due(node: Node) -> bool:
    """Whether metadata.version allows a registration and the image has none of this run."""
    known = node.image.controllers.get(node.identity.node_id)
    if known is not None and known.incarnation_id == node.identity.incarnation_id:
        return False
    return allows_controller_registration(node.image.metadata_version)


def register_self(node: Node) -> None:
    """Append this run's registration, as the active controller. Raises Refusal where nothing can be."""
    if is_due(node):
        request = registration_request(node)
        node.decide_alone(lambda ctx: register_controller(ctx, request))


class Registration:
    """When to send it to whom. `look` after whatever may have changed that; `deadline_ms` says when next."""

    def __init__(self, listener: str) -> None:
        self.deadline_ms: int | None = None
        self._listener = listener
        self._ask_id = 0
        self._in_flight = False
        self._asked: tuple[int, int | None] = (-1, None)  # epoch and leader
        self._failures = 0
        self._not_before_ms = 0

    def look(self, node: Node) -> None:
        """Send it if it is due and there is somebody to send it to."""
        self.deadline_ms = None
        core = node.core
        now = (core.epoch, core.leader_id)
        if now != self._asked:  # another leader: what the last one thought of it no longer counts
            self._asked = now
            self._in_flight = False
            self._failures = self._not_before_ms = 0
            self._ask_id += 1
        if node.stopping or self._in_flight or not is_due(node):
            return
        if node.active:
            if not node.long.is_under_way:  # if it is, there will be another look at its commit
                self._write(node)
            return
        endpoint = core.leader_endpoint(self._listener)
        if core.leader_id in (None, node.identity.node_id) or endpoint is None:
            return
        if node.now_ms < self._not_before_ms:
            self.deadline_ms = self._not_before_ms
            return
        assert core.leader_id is not None
        self._in_flight = True
        destination = Destination(core.leader_id, endpoint.host, endpoint.port)
        node.emit(AskController(self._ask_id, destination, registration_request(node)))

    def _write(self, node: Node) -> None:
        """Two processes that both believe to be this node must not fill the log with it."""
        if node.now_ms >= self._not_before_ms:
            self._not_before_ms = node.now_ms + UNTIL_SEEN_MS
            try:
                register_self(node)
            except Refusal:
                pass  # the disk is full, or this is no leader any more
        if is_due(node):
            self.deadline_ms = self._not_before_ms

    def on_answer(self, node: Node, event: ControllerAnswered) -> None:
        if event.ask_id != self._ask_id or not self._in_flight:
            return
        self._in_flight = False
        answer = event.message
        if isinstance(answer, ControllerRegistrationResponse) and answer.error_code == ErrorCode.NONE:
            self._not_before_ms = node.now_ms + UNTIL_SEEN_MS
            node.say("info", "registered", controller=self._asked[1])
        else:
            backoff_ms = FIRST_BACKOFF_MS << min(self._failures, 16)
            self._failures += 1
            self._not_before_ms = node.now_ms + min(backoff_ms, LONGEST_BACKOFF_MS)
        self._ask_id += 1
        self.look(node)

    def __repr__(self) -> str:
        return f"<Registration {'asked' if self._in_flight else 'idle'}, next at {self.deadline_ms} ms>"
