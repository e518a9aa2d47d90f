"""Effects and events of a node that answers from an image, beside those of any that serves requests."""

from __future__ import annotations

from typing import Any

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.requests.call import Call
from kraftd.wire.message import Message


class SendToNode(Effect, frozen=True):
    """Ask another node; Answered comes back.

    `listener` is the brokers' listener that the destination is of, "" for the controller listener. Another
    `client_id` than the node's, and each `channel`, has connections of its own: what is slow there delays no
    other request. `version` is the highest that is used.
    """

    request_id: int
    destination: Destination
    message: Message
    listener: str = ""
    client_id: str = ""
    version: int | None = None
    channel: str = ""

    def __repr__(self) -> str:
        return f"<SendToNode {self.request_id} {type(self.message).__name__} of {self.destination}>"


class Answered(Event, frozen=True):
    """The answer to a SendToNode; None without one."""

    request_id: int
    message: Any


class HandToController(Effect, frozen=True):
    """Pass the call to this process's controller, which answers it."""

    call: Call


class NodeStarted(Event, frozen=True):
    """The node's listeners are about to accept connections."""


class StopRequested(Event, frozen=True):
    """The process is about to end: the node finishes what others must know of (`has_ended`)."""


class AnswersSent(Event, frozen=True):
    """The answers so far have left: what was to wait for them goes on (`AnsweringNode.go_on_later`)."""


class ImageReached(Event, frozen=True):
    """The image has reached an offset for which an answer is held (`HeldAnswers.waits_for`)."""


class MetadataMoved(Event, frozen=True):
    """Something of the view has changed: the high watermark, the leader, the log's start."""
