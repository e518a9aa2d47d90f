"""Events of a replica's image: what its effects bring back."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.ground.event import Event
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


class ControllerAnswered(Event, frozen=True, gc=False):
    """The answer to a SendToController; None without one."""

    request_id: int
    message: Message | None
