"""What a node that serves requests is notified of, whichever node it is."""

from __future__ import annotations

from kraftd.raft.events import Event
from kraftd.requests.call import Call
from kraftd.security.principals import ANONYMOUS, Principal


class FramesReceived(Event, frozen=True):
    """Requests of one connection, in their slots from `first_slot` on, without their size prefixes.

    `arrived_ns` is of the runner's clock, for what it measures. `principal` is what the connection has
    authenticated as, by SASL or TLS; ANONYMOUS on a listener that does neither.
    """

    connection_id: int
    first_slot: int
    frames: list[memoryview]
    listener: str
    host: str
    arrived_ns: int = 0
    principal: Principal = ANONYMOUS

    def __repr__(self) -> str:
        return f"<FramesReceived {len(self.frames)} of {self.connection_id} from slot {self.first_slot}>"


class CallHandedOver(Event, frozen=True):
    """A call that came by another listener of this process, for this node to answer."""

    call: Call


class ConnectionClosed(Event, frozen=True):
    """The connection is gone: nothing that it asked needs an answer any more."""

    connection_id: int


class AnswerNotWritten(Event, frozen=True):
    """What a call's answer is filled with was read, and a fault came in writing the answer."""

    call: Call
    error: Exception


class TurnCame(Event, frozen=True):
    """The event loop callback that a TakeTurn asked for."""
