"""What the node is told, beyond what the consensus core is told (those events go to the core as they are)."""

from __future__ import annotations

from kraftd.raft.events import Event


class FramesReceived(Event, frozen=True):
    """Requests of one connection, in their slots from `first_slot` on, without their sizes; `arrived_ns` is
    of the runner's clock, for what it measures.
    """

    connection_id: int
    first_slot: int
    frames: list[memoryview]
    listener: str
    host: str
    arrived_ns: int = 0

    def __repr__(self) -> str:
        return f"<FramesReceived {len(self.frames)} of {self.connection_id} from slot {self.first_slot}>"


class ConnectionClosed(Event, frozen=True):
    """The connection is gone: nothing that it asked needs an answer any more."""

    connection_id: int


class CommittedRead(Event, frozen=True):
    """Whole batches from `offset` on. Answers ReadCommitted."""

    offset: int
    data: bytes | memoryview

    def __repr__(self) -> str:
        return f"<CommittedRead {len(self.data)} bytes from {self.offset}>"


class DiskFilled(Event, frozen=True):
    """There is no room for what has been appended: nothing more should be, until DiskHasRoom."""

    text: str


class DiskHasRoom(Event, frozen=True):
    """What could not be written has been."""


class TurnCame(Event, frozen=True):
    """The turn of the loop that a TakeTurn asked for."""


class TurnEnded(Event, frozen=True):
    """Everything of the turn of the loop in which EndTurn was asked for has been told."""
