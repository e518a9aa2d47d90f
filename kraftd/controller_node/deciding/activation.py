"""Becoming the active controller, with the first records of the epoch, and stepping down."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.controller.activation import activate
from kraftd.controller.context import Context
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.controller_node.deciding.periodic import Periodic
from kraftd.controller_node.effects import ControllerActivated
from kraftd.controller_node.registration import Registration
from kraftd.controller_node.watching.pending_events import PendingEvents
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import LeadershipChanged
from kraftd.replica.following import Following
from kraftd.replica.identity import Identity
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.wire.record_frame import VersionedRecord


class Leadership:
    """From a leader of the quorum to an active controller and back; `leaders_seen` counts leaders.

    A new leader is active once everything committed before its epoch is in the image.
    """

    def __init__(
        self,
        identity: Identity,
        core: RaftCore,
        context: Context,
        rights: DecisionRights,
        following: Following,
        decisions: Decisions,
        periodic: Periodic,
        registration: Registration,
        pending_events: PendingEvents,
        outbox: Outbox,
        bootstrap: Sequence[VersionedRecord],
    ) -> None:
        self.leaders_seen = 0
        self.last_leader_id: int | None = None
        self._claimed_epoch: int | None = None  # led, while the image is still catching up
        self._identity = identity
        self._core = core
        self._context = context
        self._rights = rights
        self._following = following
        self._decisions = decisions
        self._periodic = periodic
        self._registration = registration
        self._pending_events = pending_events
        self._outbox = outbox
        self._bootstrap = bootstrap  # written by the first leader of an empty log

    def changed(self, effect: LeadershipChanged) -> None:
        """Handle a change of the quorum's leader, or its loss. Raises ActivationError."""
        rights = self._rights
        if effect.leader_id is not None:
            self.leaders_seen += 1
            self.last_leader_id = effect.leader_id
        if rights.active and not (effect.is_local and effect.epoch == rights.active_epoch):
            self._step_down(effect.epoch)
        if effect.is_local:
            self._claimed_epoch = effect.epoch
            if self._following.replay.complete:
                self._claim()
        else:
            self._claimed_epoch = None
            known = effect.leader_id is not None
            self._outbox.log(
                "info",
                "leader is known" if known else "no leader",
                leader=str(effect.leader_id) if known else "nobody",
                epoch=effect.epoch,
            )
        self._registration.attempt()

    def _audit(self, event: str, **fields: int) -> None:
        self._outbox.emit(AuditLine(event, -1, fields))

    def caught_up(self) -> None:
        """Handle that the image holds everything known to be committed. Raises ActivationError."""
        self._claim()
        self._registration.check_for_duplicate()
        self._registration.attempt()

    def _claim(self) -> None:
        """Become active in the epoch that this node leads, if it leads one and is not stopping."""
        epoch = self._claimed_epoch
        if epoch is not None and not self._rights.stopping:
            self._claimed_epoch = None
            self._become_active(epoch)

    def _become_active(self, epoch: int) -> None:
        """Begin to take decisions: the image lacks nothing that was committed before the epoch."""
        rights, context = self._rights, self._context
        rights.active_epoch = epoch
        context.kraft_version = self._core.kraft_version
        context.image.mark()
        self._outbox.log(
            "info",
            "active controller",
            epoch=epoch,
            node_id=self._identity.node_id,
            next_offset=self._core.log_end_offset,
        )
        self._audit("leadership won", epoch=epoch)
        self._write_first_records()
        if rights.active:
            self._periodic.activate()
            self._outbox.emit(ControllerActivated(epoch))

    def _write_first_records(self) -> None:
        """Bootstrap an empty log, or abort what a former leader left open."""
        self._decisions.decide_alone(lambda ctx: activate(ctx, self._bootstrap))
        self._decisions.appends.flush()  # a batch of their own, as in Apache Kafka
        if self._rights.active:
            self._registration.write()

    def _step_down(self, new_epoch: int) -> None:
        """Stop deciding: undo uncommitted records and refuse their callers, which go to the next leader."""
        decisions, rights = self._decisions, self._rights
        self._audit("leadership lost", epoch=rights.active_epoch or 0, new_epoch=new_epoch)
        applied_end = decisions.long.abandon()
        committed_end = max(self._core.high_watermark, 0)
        self._outbox.log(
            "warning",
            "no longer the active controller",
            epoch=rights.active_epoch,
            new_epoch=new_epoch,
            undone_to=committed_end - 1,
        )
        rights.active_epoch = None
        decisions.appends.forget()
        self._following.undo_to(committed_end, applied_end)
        self._periodic.deactivate()
        self._pending_events.forget()
        decisions.parked.abandon()

    def __repr__(self) -> str:
        claimed = "none" if self._claimed_epoch is None else str(self._claimed_epoch)
        return f"<Leadership, epoch {claimed} claimed, {self.leaders_seen} leaders seen>"
