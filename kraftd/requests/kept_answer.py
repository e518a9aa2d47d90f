"""An answer that is kept for equal requests: all of it but the correlation id."""

from __future__ import annotations

from struct import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer
from kraftd.requests.events import FramesReceived
from kraftd.wire.primitives import Buffer

_CORRELATION_ID = Struct(">i")


class KeptAnswer(NamedTuple):
    """An answer without its correlation id, whose place is between `size` and `rest`."""

    key: int
    version: int
    size: bytes
    rest: bytes

    def parts(self, correlation_id: int) -> list[Buffer]:
        """The answer to another request."""
        return [self.size, _CORRELATION_ID.pack(correlation_id), self.rest]

    def to_equal(self, event: FramesReceived, slot: int, frame: bytes) -> Answer:
        """The answer to an equal request, which is a frame of the event."""
        call = Call(
            event.connection_id,
            slot,
            event.listener,
            event.host,
            self.key,
            self.version,
            0,
            "",
            None,
            event.principal,
            arrived_ns=event.arrived_ns,
            size_bytes=len(frame),
            settled=True,
        )
        return Answer(call.connection_id, slot, [self.size, frame[4:8], self.rest], call)


def kept_answer(call: Call, parts: list[Buffer]) -> KeptAnswer:
    """The framed answer to a call."""
    whole = b"".join(parts)
    return KeptAnswer(call.key, call.version, whole[:4], whole[8:])
