"""Effects of a replica's image: reads of the log and of snapshots, requests to the active controller."""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.types import OffsetAndEpoch
from kraftd.wire.message import Message


class ReadCommitted(Effect, frozen=True):
    """Read whole batches from `offset` on, none at or past `end_offset`, and answer CommittedRead."""

    offset: int
    end_offset: int
    max_bytes: int


class OpenSnapshot(Effect, frozen=True, gc=False):
    """Open a snapshot that is on disk, to be loaded into the image: SnapshotOpened comes back."""

    snapshot_id: OffsetAndEpoch


class MetadataLoaded(Effect, frozen=True):
    """The image holds everything that was committed when the node started."""

    offset: int


class SendToController(Effect, frozen=True, gc=False):
    """Send a request to the active controller, as this node rather than as its raft client;
    ControllerAnswered comes back.
    """

    request_id: int
    destination: Destination
    message: Message

    def __repr__(self) -> str:
        return f"<SendToController {self.request_id} {type(self.message).__name__} to {self.destination}>"
