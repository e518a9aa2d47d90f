"""Events of the controller node, in addition to those of the consensus core, which are passed to it
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.ground.event import Event
from kraftd.requests.events import AnswerNotWritten as AnswerNotWritten
from kraftd.requests.events import ConnectionClosed as ConnectionClosed
from kraftd.requests.events import FrameRead as FrameRead
from kraftd.requests.events import FramesReceived as FramesReceived
from kraftd.requests.events import SliceDue as SliceDue
from kraftd.types import OffsetAndEpoch
from kraftd.wire.message import Message


class CommittedRead(Event, frozen=True):
    """Whole batches from `offset` on. Answers ReadCommitted."""

    offset: int
    data: bytes | memoryview

    def __repr__(self) -> str:
        return f"<CommittedRead {len(self.data)} bytes from {self.offset}>"


class SnapshotOpened(Event, frozen=True, gc=False):
    """A snapshot and its records. Answers OpenSnapshot."""

    snapshot_id: OffsetAndEpoch
    runs: Iterator[list[Message]]


class DiskFilled(Event, frozen=True):
    """The disk is full: nothing more is appended until DiskHasRoom."""

    text: str


class DiskHasRoom(Event, frozen=True):
    """The records that did not fit on the disk are written now."""


class FlushDue(Event, frozen=True):
    """Everything that was ready at the time of ScheduleFlush has been handled. Answers ScheduleFlush."""
