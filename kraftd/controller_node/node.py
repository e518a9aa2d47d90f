"""The node of a controller: connects its parts, and passes each event to the part that it concerns. No IO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kraftd.controller.context import Context
from kraftd.controller_node.core_answers import CoreAnswers
from kraftd.controller_node.deciding.activation import Leadership
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.controller_node.deciding.long_decisions import LongDecisions
from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.controller_node.deciding.periodic import Periodic
from kraftd.controller_node.events import DiskFilled, DiskHasRoom, FlushDue
from kraftd.controller_node.registration import Registration
from kraftd.controller_node.watching.pending_events import PendingEvents
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.metadata.image import Image
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.raft.core import RaftCore
from kraftd.replica.core_driver import CoreDriver
from kraftd.replica.effects import OpenSnapshot
from kraftd.replica.events import CommittedRead, ControllerAnswered, SnapshotOpened
from kraftd.replica.fatal_faults import FATAL
from kraftd.replica.following import Following
from kraftd.replica.identity import Identity
from kraftd.replica.next_slice import NextSlice
from kraftd.replica.replay import Snapshot
from kraftd.replica.wall_clock import WallClock
from kraftd.requests.boundary import Boundary
from kraftd.requests.events import (
    AnswerNotWritten,
    CallHandedOver,
    ConnectionClosed,
    FrameRead,
    FramesReceived,
    SliceDue,
)
from kraftd.requests.large_requests import Lane
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry
from kraftd.security.authorizer import Authorizer
from kraftd.wire.record_frame import VersionedRecord


class Node:
    """One controller. A step must not call it again.

    `boundary` answers calls, `decisions` decides, `following` keeps the image up to date with the log,
    `decision_rights` say whether this node decides. Host, metrics and simulation read these and its other
    public parts; only `step` and `stop` change them. `registry` makes the registry of its listeners, whose
    handlers get this node.
    """

    def __init__(
        self,
        identity: Identity,
        core: RaftCore,
        context: Context,
        registry: Callable[[Any], Registry],
        bootstrap: Sequence[VersionedRecord] = (),
        snapshot: Snapshot | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.identity, self.core, self.context = identity, core, context
        self.outbox = outbox = Outbox()
        self._next_slice = next_slice = NextSlice(outbox)
        self._large_is_next = True
        lane = Lane(next_slice.schedule, lambda: context.now_ms)
        self.boundary = boundary = Boundary(registry(self), outbox, lane, authorizer=authorizer, fatal=FATAL)
        boundary.refusals.identify(core.key, identity.cluster_id, lambda: core.is_leader)
        self.decision_rights = rights = DecisionRights(core)
        driver, self.wall_clock = CoreDriver(core, context, outbox), WallClock(context, outbox)
        self._pending_events = pending = PendingEvents(outbox)
        self.following = following = Following(
            context, core, boundary, next_slice, outbox, snapshot, authorizer
        )
        parked = ParkedAnswers(driver, rights, boundary)
        self._appends = appends = Appends(driver, context, rights, following, parked, pending, outbox)
        self.core_answers = CoreAnswers(driver, context, appends, boundary, outbox)
        long = LongDecisions(
            boundary, context, rights, following, appends, parked, driver, pending, next_slice
        )
        self.decisions = decisions = Decisions(boundary, context, rights, appends, parked, long)
        self.periodic = periodic = Periodic(context, rights, decisions, outbox)
        self.registration = registration = Registration(identity, context, core, rights, decisions, outbox)
        self.leadership = Leadership(
            identity,
            core,
            context,
            rights,
            following,
            decisions,
            periodic,
            registration,
            pending,
            outbox,
            bootstrap,
        )
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            FramesReceived: boundary.take_in,
            CallHandedOver: lambda event: boundary.handle(event.call),
            ConnectionClosed: self._on_connection_closed,
            FrameRead: boundary.large.frame_read,
            AnswerNotWritten: lambda event: boundary.fail(event.call, event.error),
            CommittedRead: self._on_committed_read,
            SliceDue: self._on_slice_due,
            FlushDue: lambda _: appends.flush(),
            DiskFilled: self._on_disk_filled,
            DiskHasRoom: self._on_disk_has_room,
            SnapshotOpened: self._on_snapshot_opened,
            ControllerAnswered: registration.on_answer,
            raft_events.Started: self._on_started,
            raft_events.ShutdownRequested: self._on_shutdown_requested,
            DeadlineReached: self._on_deadline,
            raft_events.WallClockStepped: self._on_wall_clock_stepped,
        }
        driver.takers |= self._takers()

    # -- driving

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the effects, to be performed in order."""
        self.context.now_ms = now_ms
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        else:
            self._appends.step_core(event)
        outbox = self.outbox  # as its `take` does
        made, outbox.effects = outbox.effects, []
        return made

    def deadline_ms(self) -> int | None:
        """When DeadlineReached is due; None for never."""
        earliest = self.core.deadline_ms()
        large_ms = self.boundary.large.deadline_ms()
        for deadline_ms in (self.periodic.deadline_ms, self.registration.deadline_ms, large_ms):
            if deadline_ms is not None and (earliest is None or deadline_ms < earliest):
                earliest = deadline_ms
        return earliest

    def stop(self) -> None:
        """Start no more work without a request: the daemon is about to end."""
        self.decision_rights.stopping = True
        self.periodic.deactivate()

    @property
    def active(self) -> bool:
        """Return whether this node takes decisions."""
        return self.decision_rights.active_epoch is not None

    @property
    def image(self) -> Image:
        """The metadata of this node; a new object after a snapshot replaced its log."""
        return self.context.image

    @property
    def metadata_errors(self) -> int:
        """How many decisions and periodic tasks failed unexpectedly."""
        return self.decisions.failures + self.decisions.long.failures + self.periodic.failures

    # -- events

    def _on_started(self, event: raft_events.Started) -> None:
        self.following.start()
        self._appends.step_core(event)

    def _on_shutdown_requested(self, event: raft_events.ShutdownRequested) -> None:
        self._appends.step_core(event)
        self.decision_rights.ending = True

    def _on_connection_closed(self, event: ConnectionClosed) -> None:
        self.boundary.connection_closed(event.connection_id)
        self.following.abandon(event.connection_id)
        self.core_answers.abandon(event.connection_id)

    def _on_deadline(self, event: DeadlineReached) -> None:
        now_ms = self.context.now_ms
        core_deadline_ms = self.core.deadline_ms()
        if core_deadline_ms is not None and core_deadline_ms <= now_ms:
            self._appends.step_core(event)
        self.periodic.run_due()
        self.boundary.large.run_due()
        if self.registration.deadline_ms is not None and self.registration.deadline_ms <= now_ms:
            self.registration.attempt()

    def _on_wall_clock_stepped(self, event: raft_events.WallClockStepped) -> None:
        self.wall_clock.stepped(event)
        self._appends.step_core(event)

    def _on_disk_filled(self, event: DiskFilled) -> None:
        """Resign in favour of another voter, if there is one; take no decision until the disk has space.

        Appended records stay, and are written as soon as possible. No answer has confirmed them.
        """
        self.decision_rights.disk_full = True
        self.outbox.log("error", "the disk is full: no writes until there is room", error=event.text)
        if self.core.is_leader and len(self.core.voters) > 1:
            self._appends.step_core(raft_events.ResignRequested(self.core.epoch))

    def _on_disk_has_room(self, _: DiskHasRoom) -> None:
        self.decision_rights.disk_full = False
        self.outbox.log("info", "the disk has room again: writes go on")

    # -- slices

    def _on_slice_due(self, _: SliceDue) -> None:
        """Forget what committed decisions have replaced; else continue a long decision; else, on a standby,
        read on. An active controller applies its own decisions itself. While there are large requests, every
        other slice is theirs.
        """
        self._next_slice.started()
        large = self.boundary.large
        if large.busy:
            self._next_slice.schedule()
            self._large_is_next = not self._large_is_next
            if not self._large_is_next:
                large.run_slice()
                return
        if self.active and self.following.forget_some():
            return
        long = self.decisions.long
        if long.busy:
            long.go_on()
            if self.decisions.long.busy or self.following.replay.busy:
                self._next_slice.schedule()
        elif not self.active:
            self._replay_some()

    def _replay_some(self) -> None:
        """Replay a part, but not during a long decision, for which the image must not change."""
        if self.decisions.long.busy:
            self._next_slice.schedule()
        else:
            self.following.replay_some(self.leadership.caught_up)

    def _on_committed_read(self, event: CommittedRead) -> None:
        self.following.take_batches(event)
        self._replay_some()

    def _on_snapshot_opened(self, event: SnapshotOpened) -> None:
        self.following.open_snapshot(event)
        self._replay_some()

    # -- effects of the core

    def _takers(self) -> dict[type, Callable[[Any], None]]:
        return {
            raft_effects.AppendAccepted: _nothing,  # the caller of the append handles these two
            raft_effects.AppendRefused: _nothing,
            raft_effects.HighWatermarkMoved: self._on_high_watermark,
            raft_effects.LeadershipChanged: self.leadership.changed,
            raft_effects.VotersChanged: self._on_voters,
            raft_effects.ResetLog: self._on_reset_log,
        }

    def _on_high_watermark(self, effect: raft_effects.HighWatermarkMoved) -> None:
        if not self.active:
            self.following.read_on()
            return
        high_watermark = effect.high_watermark
        self.context.image.commit(high_watermark - 1)
        self.following.forget_some()
        self._pending_events.release(high_watermark)
        self.following.publish(high_watermark)
        self.registration.attempt()

    def _on_reset_log(self, effect: raft_effects.ResetLog) -> None:
        """Read a new image: a leader's snapshot has replaced the log."""
        self.outbox.emit(effect)
        self.outbox.emit(OpenSnapshot(effect.snapshot_id))
        self.decisions.long.abandon()
        self.following.start_anew()

    def _on_voters(self, _: raft_effects.VotersChanged) -> None:
        self.context.kraft_version = self.core.kraft_version
        self.following.finalized_features.kraft_version = self.core.kraft_version

    def __repr__(self) -> str:
        rights, parked = self.decision_rights, self.decisions.parked
        return f"<Node {self.identity.node_id} {rights!r}, {parked!r}, {self.image!r}>"


def _nothing(_: Any) -> None:
    """Ignore effects of the core that other effects already cover."""
