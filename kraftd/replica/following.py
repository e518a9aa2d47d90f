"""The image that follows the committed log: reads records into it, publishes it to clients, and keeps the
calls that wait until the metadata is known.

A standby reads committed records, a slice per event loop callback. An active controller applies its own
decisions (`applied`) and publishes them once they are committed.
"""

from __future__ import annotations

from typing import Protocol

from kraftd.controller.context import Context
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import ReplicaChanges
from kraftd.raft.core import RaftCore
from kraftd.replica.acl_publisher import AclPublisher
from kraftd.replica.effects import MetadataLoaded
from kraftd.replica.events import CommittedRead, SnapshotOpened
from kraftd.replica.finalized_features import FinalizedFeatures
from kraftd.replica.load_progress import LoadProgress
from kraftd.replica.next_slice import NextSlice
from kraftd.replica.replay import Replay, Snapshot
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import ScheduleSlice
from kraftd.requests.outbox import Outbox
from kraftd.requests.waiting_calls import WaitingCalls
from kraftd.security.authorizer import Authorizer
from kraftd.wire.record_frame import VersionedRecord


class CaughtUp(Protocol):
    """Called when everything known to be committed is in the image."""

    def __call__(self) -> None: ...


class Following:
    """The image's place in the log.

    `replay.next_offset` is the first offset that is not in the image; `finalized_features` holds the
    committed features.
    """

    def __init__(
        self,
        context: Context,
        core: RaftCore,
        boundary: Boundary,
        next_slice: NextSlice,
        outbox: Outbox,
        snapshot: Snapshot | None,
        authorizer: Authorizer | None,
    ) -> None:
        self._acls = AclPublisher(authorizer)
        self._acls.follow(context.image)
        self.finalized_features = FinalizedFeatures()
        self.load_progress = LoadProgress()
        self.replay = Replay(context.image, snapshot, self.load_progress)
        self._context = context
        self._core = core
        self._next_slice = next_slice
        self._outbox = outbox
        self._waiting = WaitingCalls(boundary)

    # -- reading the log

    def start(self) -> None:
        """Load the snapshot found at the start, if there is one."""
        if self.replay.start() is not None:
            self.load_progress.begin_snapshot(self._context.now_ms)
            self._next_slice.schedule()

    def start_anew(self) -> None:
        """Begin a new image: the log was replaced by a leader's snapshot, which is read once it is opened."""
        former, image = self._context.image, Image()
        self._context.image = image
        if former.replica_changes is not None:
            image.replica_changes = ReplicaChanges(former.replica_changes.broker_id)
        self._acls.follow(image)
        self.replay = Replay(image, load_progress=self.load_progress)
        self.replay.await_snapshot()

    def open_snapshot(self, event: SnapshotOpened) -> None:
        """Accept the awaited snapshot; the next `replay_some` begins with it."""
        self.load_progress.begin_snapshot(self._context.now_ms)
        self.replay.load(event.snapshot_id, event.runs)

    def take_batches(self, event: CommittedRead) -> None:
        """Accept batches that were read; the next `replay_some` begins with them."""
        self.replay.begin(event.offset, event.data)

    def read_on(self) -> None:
        """Request committed batches that are not in the image from the log."""
        read = self.replay.more(self._core.high_watermark or 0)
        if read is not None:
            self._outbox.emit(read)

    def replay_some(self, caught_up: CaughtUp) -> None:
        """Apply a part of what has been read."""
        replay = self.replay
        next_offset = replay.next_offset
        follow_up = replay.run_slice(self._core.high_watermark or 0)
        self._acls.gather(replay.image, replay.image.offset + 1)
        if next_offset < replay.snapshot_end <= replay.next_offset:
            self.load_progress.end_snapshot(self._context.now_ms)
        if isinstance(follow_up, ScheduleSlice):
            self._next_slice.schedule()
        elif follow_up is not None:
            self._outbox.emit(follow_up)
        elif replay.complete:
            self.publish(replay.next_offset)
            caught_up()

    # -- the active controller's own records

    def applied(self, records: list[VersionedRecord], end_offset: int) -> None:
        """Note that a decision's records are in the image; they end before that offset."""
        context = self._context
        self.replay.next_offset = end_offset
        for departure in context.heartbeats.departures.values():
            departure.note(records)
        self.finalized_features.applied(context.image)
        self.load_progress.timestamp_ms = context.wall_ms

    def undo_to(self, committed_end: int, applied_end: int | None) -> None:
        """Undo what is not committed, after the leadership is lost. `applied_end` is the first offset of
        records that are in the log but not yet in the image, if there are any.
        """
        self._context.image.undo_to(committed_end - 1)
        self.finalized_features.forget_uncommitted()
        self.replay.next_offset = committed_end
        if applied_end is not None and applied_end < committed_end:
            self.replay.next_offset = applied_end
            self.read_on()

    def forget_some(self) -> bool:
        """Forget a part of what committed records have replaced; return whether there is more."""
        more = self._context.image.forget_some()
        if more:
            self._next_slice.schedule()
        return more

    # -- publishing to clients

    def publish(self, high_watermark: int) -> None:
        """Publish everything below, which is committed: ACLs, features, and answers to waiting calls."""
        self._acls.publish(self._context.image, high_watermark)
        first = self.finalized_features.epoch < 0
        if not self.finalized_features.committed(self._context.image, high_watermark):
            return
        if first:
            self._context.image.forget_elections()
            self._outbox.emit(MetadataLoaded(high_watermark))
        self._waiting.handle_all()

    def knows_metadata(self, call: Call) -> bool:
        """Return whether the call can be answered from the image; if not, it is handled again once it can."""
        if self.finalized_features.epoch >= 0:
            return True
        self._waiting.add(call)
        return False

    def abandon(self, connection_id: int) -> None:
        """Forget the calls of a lost connection."""
        self._waiting.abandon(connection_id)

    def __repr__(self) -> str:
        return f"<Following {self.replay!r}, {len(self._waiting)} calls wait for metadata>"
