"""What the node wants done, beyond the effects of the consensus core that it passes on as they are.

Passed on: PersistElection, AppendRecords, SyncLog, TruncateLog, ResetLog, Send, BeginSnapshot, WriteSnapshot,
FinishSnapshot, AbandonSnapshot and ShutdownCompleted. The order is the order of durability for all of them.
"""

from __future__ import annotations

from typing import Any

from kraftd.raft.effects import Effect as Effect
from kraftd.server.call import Call
from kraftd.types import OffsetAndEpoch
from kraftd.wire.primitives import Buffer


class Answer(Effect, frozen=True):
    """Send these bytes as the answer in this slot of the connection; none at all for an answer not wanted.

    `call` is what they answer, None where it was no request that is served.
    """

    connection_id: int
    slot: int
    parts: list[Buffer]
    call: Call | None = None

    def __repr__(self) -> str:
        return f"<Answer {self.connection_id}/{self.slot}, {sum(map(len, self.parts))} bytes>"


class AnswerRecords(Effect, frozen=True):
    """Read whole batches from `offset` on, none at or past `end_offset`, up to `max_bytes` and at least one;
    then send `fill(data)` as the answer to the call."""

    call: Call
    message: Any
    offset: int
    end_offset: int
    max_bytes: int

    def fill(self, data: Buffer) -> list[Buffer]:
        """The framed answer with the records in it."""
        self.message.responses[0].partitions[0].records = data
        return self.call.frame(self.message)

    def __repr__(self) -> str:
        return (
            f"<AnswerRecords {self.call!r} [{self.offset}, {self.end_offset}) up to {self.max_bytes} bytes>"
        )


class AnswerSnapshot(Effect, frozen=True):
    """Read up to `max_bytes` of the snapshot's file from `position` on; then send `fill(data)`."""

    call: Call
    message: Any
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int

    def fill(self, data: Buffer) -> list[Buffer]:
        """The framed answer with the bytes of the snapshot in it."""
        self.message.topics[0].partitions[0].unaligned_records = data
        return self.call.frame(self.message)


class CloseConnection(Effect, frozen=True):
    """Close the connection once what was answered before has been sent."""

    connection_id: int
    reason: str


class ReadCommitted(Effect, frozen=True):
    """Read whole batches from `offset` on, none at or past `end_offset`, and answer CommittedRead."""

    offset: int
    end_offset: int
    max_bytes: int


class EndTurn(Effect, frozen=True):
    """Say TurnEnded once what is ready in this turn of the loop has been taken in."""


class TakeTurn(Effect, frozen=True):
    """There is more to do than one turn of the loop allows: answer TurnCame in the next one."""


class Say(Effect, frozen=True):
    """A line for the log: `level` is debug, info, warning or error."""

    level: str
    text: str
    fields: dict[str, Any]


class ControllerActivated(Effect, frozen=True):
    """This node is the active controller of the epoch: it takes decisions from here on."""

    epoch: int


class ControllerLoaded(Effect, frozen=True):
    """The image has caught up with what was committed when the node started."""

    offset: int
