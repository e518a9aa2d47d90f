"""Effects of the controller node, in addition to those of any node (`requests.effects`) and of its image
(`replica.effects`).

Passed on from the consensus core: PersistElection, AppendRecords, SyncLog, TruncateLog, ResetLog, Send,
BeginSnapshot, WriteSnapshot, FinishSnapshot, AbandonSnapshot and ShutdownCompleted. The order is the order of
durability for all of them.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.effect import Effect as Effect
from kraftd.raft.answers import fill_piece
from kraftd.requests.call import Call
from kraftd.types import OffsetAndEpoch
from kraftd.wire.primitives import Buffer


class AnswerSnapshot(Effect, frozen=True):
    """Read up to `max_bytes` of the snapshot's file from `position` on; then send `fill(data)`."""

    call: Call
    message: Any
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int

    def fill(self, data: Buffer) -> list[Buffer]:
        """The framed answer with the bytes of the snapshot in it."""
        fill_piece(self.message, data)
        return self.call.frame(self.message)


class ScheduleFlush(Effect, frozen=True):
    """Answer FlushDue once the event loop has handled all that is ready now."""


class ControllerActivated(Effect, frozen=True):
    """This node is now the active controller of the epoch and takes decisions."""

    epoch: int
