"""Events of any node that serves requests."""

from __future__ import annotations

from kraftd.ground.event import Event
from kraftd.requests.call import Call
from kraftd.requests.work_shares import Job
from kraftd.security.principals import ANONYMOUS, Principal


class FramesReceived(Event, frozen=True):
    """Requests of one connection, in their slots from `first_slot` on, without their size prefixes.

    `arrived_ns` is of the runner's clock, for its measurements. `principal` is that of the connection, by
    SASL or TLS; ANONYMOUS on a listener with neither.
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
    """A call that arrived on another listener of this process, for this node to answer."""

    call: Call


class ConnectionClosed(Event, frozen=True):
    """The connection is gone: its requests no longer need answers."""

    connection_id: int


class AnswerNotWritten(Event, frozen=True):
    """A fault prevented reading or writing the content of a call's answer."""

    call: Call
    error: Exception


class FrameRead(Event, frozen=True, gc=True):
    """A large frame is decoded: its call, or the exception that says why it is none. Answers ReadFrame.

    It is tracked: the traceback of an exception may lead back to it, through the frames of its thread.
    """

    job: Job
    outcome: Call | Exception


class SliceDue(Event, frozen=True):
    """The event loop callback that ScheduleSlice requested."""
