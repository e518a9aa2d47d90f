"""Effects and events of a client node, in addition to those of any node that serves requests."""

from __future__ import annotations

from typing import Any

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.requests.call import Call
from kraftd.requests.effects import ReadFrame
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer


class AnswerFetch(Effect, frozen=True):
    """Read whole batches from `offset` on, none at or past `end_offset`, up to `max_bytes` and at least one;
    then send `fill(data)` as the answer to the call."""

    call: Call
    message: FetchResponse
    partition: PartitionData
    offset: int
    end_offset: int
    max_bytes: int

    def fill(self, data: Buffer) -> list[Buffer]:
        """The framed answer with the records in it."""
        self.partition.records = data
        return self.call.frame(self.message)

    def __repr__(self) -> str:
        return f"<AnswerFetch {self.call!r} [{self.offset}, {self.end_offset}) up to {self.max_bytes} bytes>"


class ScheduleClientSlice(Effect, frozen=True):
    """The client node has more to do than one event loop callback allows: answer SliceDue in the next one."""


class ReadClientFrame(ReadFrame, frozen=True):
    """ReadFrame of a client node."""


class LookUpTimes(Effect, frozen=True):
    """Look for the first record at or after each time below `end_offset`; TimesLookedUp comes back.

    A time of None asks for the record with the largest timestamp.
    """

    call: Call
    times_ms: list[int | None]
    end_offset: int


class TimesLookedUp(Event, frozen=True):
    """Timestamp and offset of each requested record; None if there is none."""

    call: Call
    found: list[tuple[int, int] | None]


class SendToNode(Effect, frozen=True):
    """Ask another node; Answered comes back.

    `listener` is the brokers' listener that the destination is of, "" for the controller listener.
    """

    request_id: int
    destination: Destination
    message: Message
    listener: str = ""

    def __repr__(self) -> str:
        return f"<SendToNode {self.request_id} {type(self.message).__name__} of {self.destination}>"


class Answered(Event, frozen=True):
    """The answer to a SendToNode; None without one."""

    request_id: int
    message: Any


class HandToController(Effect, frozen=True):
    """Pass the call to this node's controller, which answers it."""

    call: Call


class ImageReached(Event, frozen=True):
    """The image has reached an offset for which an answer is held (`HeldAnswers.waits_for`)."""


class MetadataMoved(Event, frozen=True):
    """Something of the view has changed: the high watermark, the leader, the log's start."""
