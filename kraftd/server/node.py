"""The node: the consensus core, the image and the decisions joined, without IO.

`step(event, now_ms)` returns effects; `deadline_ms()` says when to call again. What arrives in frames is
read (`intake`), routed (`routing`), and handled by the API's own file, which uses one of three verbs:
`answer` (at once), `ask_core` (the consensus core answers), `decide` (a decision on the image: its
records are appended, and its answer is parked until they are committed).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import GeneratorType
from typing import Any, TypeVar

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision, Refusal
from kraftd.controller.turns import Deciding
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.metadata.image import Image
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.raft.core import RaftCore
from kraftd.raft.events import Event
from kraftd.server.activation import become_active, step_down
from kraftd.server.appending import Appends
from kraftd.server.call import Call, envelope_error
from kraftd.server.core_answers import CoreAnswers
from kraftd.server.effects import (
    Answer,
    CloseConnection,
    ControllerLoaded,
    Effect,
    Say,
)
from kraftd.server.events import (
    CommittedRead,
    ConnectionClosed,
    DiskFilled,
    DiskHasRoom,
    FramesReceived,
    TurnCame,
    TurnEnded,
)
from kraftd.server.finalized import FinalizedFeatures
from kraftd.server.identity import Identity
from kraftd.server.intake import NotServed, read_call
from kraftd.server.loading import Loading
from kraftd.server.long_decisions import AT_ONCE, LongDecisions, first_turn
from kraftd.server.parked import ParkedAnswers
from kraftd.server.periodic import Periodic
from kraftd.server.refusal_answers import refuse
from kraftd.server.registration import ControllerAnswered, Registration
from kraftd.server.replay import Replay, Snapshot
from kraftd.server.request_stats import RequestStats
from kraftd.server.routing import SERVED
from kraftd.server.sayings import Sayings
from kraftd.server.snapshot_download import OpenSnapshot, SnapshotOpened
from kraftd.server.turns import Turns
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import EncodeError, ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.record_frame import VersionedRecord

A = TypeVar("A", bound=Message)
# Of the context, the request and its version; in turns, if it may take long.
Decide = Callable[[Context, Any, int], Decision[Any] | Deciding]

HEARTBEAT = int(ApiKey.BROKER_HEARTBEAT)

_NOT_CONTROLLER_TEXT = "The active controller appears to be {}."


class Node:
    """One controller. Not to be called again from within a step."""

    def __init__(
        self,
        identity: Identity,
        core: RaftCore,
        context: Context,
        bootstrap: Sequence[VersionedRecord] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        self.identity = identity
        self.bootstrap = bootstrap  # what the first leader of an empty log writes
        self.core = core
        self.context = context
        self.image = context.image
        self.active_epoch: int | None = None  # the epoch in which this node takes decisions
        self.stopping = False
        self.ending = False  # the core has been told to shut down: it appends nothing more
        self.disk_full = False  # nothing new is decided then; what is known is still told
        self.now_ms = 0
        self.requests = RequestStats()
        self.leaders_seen = 0
        self.metadata_errors = 0  # decisions and tasks that failed as none should
        self.finalized = FinalizedFeatures()
        self.parked = ParkedAnswers()
        self.sayings = Sayings()
        self.loading = Loading()
        self.replay = Replay(self.image, snapshot, self.loading)
        self.periodic = Periodic(context.settings)
        self.registration = Registration(identity.quorum_listener)
        self._claimed_epoch: int | None = None  # led, but the image has yet to catch up
        self.appends = Appends()
        self.core_answers = CoreAnswers()
        self.long = LongDecisions()
        self._postponed: list[Call] = []  # asked before the metadata was known
        self.turns = Turns()
        self._out: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            FramesReceived: self._on_frames,
            ConnectionClosed: self._on_connection_closed,
            CommittedRead: self._on_committed_read,
            TurnCame: lambda _: self.turns.came(self),
            TurnEnded: lambda _: self.appends.give(self),
            DiskFilled: self._on_disk_filled,
            DiskHasRoom: self._on_disk_has_room,
            SnapshotOpened: self._on_snapshot_opened,
            ControllerAnswered: self._on_controller_answered,
            raft_events.Started: self._on_started,
            raft_events.ShutdownRequested: self._on_shutdown_requested,
            raft_events.DeadlineReached: self._on_deadline,
        }
        self._core_effects: dict[type, Callable[[Any], None]] = {
            raft_effects.Respond: partial(self.core_answers.on_respond, self),
            raft_effects.RespondRecords: partial(self.core_answers.on_respond_records, self),
            raft_effects.RespondSnapshot: partial(self.core_answers.on_respond_snapshot, self),
            raft_effects.AppendAccepted: _nothing,  # whoever appends looks for these two
            raft_effects.AppendRefused: _nothing,
            raft_effects.AppendCommitted: _nothing,  # answers are released by the high watermark
            raft_effects.AppendAborted: _nothing,  # and refused when leadership is lost
            raft_effects.HighWatermarkMoved: self._on_high_watermark,
            raft_effects.LeadershipChanged: self._on_leadership,
            raft_effects.VotersChanged: self._on_voters,
            raft_effects.ResetLog: self._on_reset_log,
        }

    # -- driving

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """One event; the effects that follow from it, to be performed in order."""
        self.now_ms = self.context.now_ms = now_ms
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        else:
            self._tell_core(event)
        out = self._out
        self._out = []
        return out

    def deadline_ms(self) -> int | None:
        """When DeadlineReached is due, if ever."""
        earliest = self.core.deadline_ms()
        for deadline_ms in (self.periodic.deadline_ms, self.registration.deadline_ms):
            if deadline_ms is not None and (earliest is None or deadline_ms < earliest):
                earliest = deadline_ms
        return earliest

    def emit(self, effect: Effect) -> None:
        self._out.append(effect)

    def say(self, level: str, text: str, /, **fields: Any) -> None:
        self._out.append(Say(level, text, fields))

    def stop(self) -> None:
        """Start nothing of its own any more: the daemon is about to end."""
        self.stopping = True
        self.periodic.deactivate()

    @property
    def active(self) -> bool:
        """Whether this node takes decisions."""
        return self.active_epoch is not None

    @property
    def busy(self) -> bool:
        """Whether answers to accepted decisions are still owed."""
        return bool(self.parked) or self.long.busy

    # -- requests

    def _on_frames(self, event: FramesReceived) -> None:
        connection_id = event.connection_id
        slot = event.first_slot
        for frame in event.frames:
            try:
                call = read_call(connection_id, slot, event.listener, event.host, bytes(frame))
            except NotServed as error:
                self.requests.not_served += 1
                self._out.append(Answer(connection_id, slot, error.parts))
            except ProtocolError as error:
                self._out.append(CloseConnection(connection_id, str(error)))
                return
            else:
                call.arrived_ns = event.arrived_ns
                call.size_bytes = len(frame)
                self.handle(call)
            slot += 1

    def handle(self, call: Call) -> None:
        """Route a call to its API's file; whatever goes wrong there is that call's affair alone."""
        try:
            SERVED[call.key].handle(self, call)
        except Refusal as refusal:
            self.refuse(call, refusal.code, refusal.message)
        except EncodeError as error:
            self.say("error", "an answer could not be written", call=repr(call), error=str(error))
            self.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(self, call: Call, response: Message) -> None:
        """Answer at once."""
        errors = self.requests.count_errors(call.key, response)
        self._out.append(Answer(call.connection_id, call.slot, call.frame_with(response, errors), call))

    def knows_metadata(self, call: Call) -> bool:
        """Whether the call can be answered from the image; if not yet, it is handled again once it can."""
        if self.finalized.epoch >= 0:
            return True
        self._postponed.append(call)
        return False

    def refuse(self, call: Call, code: ErrorCode, message: str | None = None) -> None:
        """Refuse the whole request."""
        if code == ErrorCode.NOT_CONTROLLER and call.envelope is not None:
            parts = envelope_error(call.envelope, code)  # the broker looks for the controller again
        else:
            response = refuse(call.key, call.version, call.message, code, message)
            self.requests.count_errors(call.key, response)
            parts = call.frame(response)
        self._out.append(Answer(call.connection_id, call.slot, parts, call))

    def ask_core(self, call: Call) -> None:
        """Let the consensus core answer, now or later."""
        self.core_answers.ask(self, call)

    def decide(self, call: Call, decide: Decide, *, on_standby: bool = False) -> None:
        """Take a decision on the image; append its records; answer once they are committed.

        An answer without records waits for the records that it may have seen, whoever had them written, as a
        read of Kafka's controller waits for the highest offset in its purgatory: so nobody is told what could
        still be undone. One that knows what it has seen (`seen_offset`) waits for that.
        `on_standby` lets every controller answer, from what it has applied. What takes long is made, appended
        and applied in turns, and the others wait.
        """
        self._check_may_decide(on_standby)
        if call.key != HEARTBEAT and self.long.put_off(call):
            return
        context, epoch = self.context, self.active_epoch
        context.next_offset = self.next_offset
        try:
            made = decide(context, call.message, call.version)
            decision = first_turn(made) if isinstance(made, GeneratorType) else made
        except Refusal:
            raise
        except Exception as error:
            self.decision_failed(call, error)
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        if not isinstance(decision, Decision) or len(decision.records) > AT_ONCE:
            if not self.long.is_under_way:
                self.long.begin(self, call, decision)
            else:
                self.long.put_off(call)
            return
        if decision.records and self.long.is_under_way:
            self.long.put_off(call)
            return
        response = decision.answer
        if type(response) is not BrokerHeartbeatResponse or response.error_code:
            self.requests.count_errors(call.key, response)
        parts = call.frame(response)
        if decision.records:
            end_offset = self.appends.append(self, decision.records, decision.atomic)
            if self.active_epoch != epoch:
                # The step that appended also ended the leadership (a late check-quorum): it was taken back.
                raise self.not_controller()
        else:
            end_offset = context.next_offset
        if decision.after is not None:
            decision.after(end_offset)
        if not decision.records:
            seen_offset = decision.seen_offset
            end_offset = self.appends.decided_end if seen_offset is None else seen_offset + 1
        self.answer_decision(call, parts, end_offset)

    def _check_may_decide(self, on_standby: bool = False) -> None:
        """Raises Refusal. A leader that is about to hand over begins nothing new."""
        if (self.active_epoch is None and not on_standby) or (self.stopping and len(self.core.voters) > 1):
            raise self.not_controller()

    def decision_failed(self, call: Call, error: Exception) -> None:
        self.metadata_errors += 1
        self.say("error", "a decision failed", call=repr(call), error=repr(error), exc_info=error)

    def answer_decision(self, call: Call, parts: list[Buffer], end_offset: int) -> None:
        """Answer once what it stands for, or what it may have seen, is committed."""
        if end_offset <= max(self.core.high_watermark, 0):
            self._out.append(Answer(call.connection_id, call.slot, parts, call))
        else:
            self.parked.park(end_offset, call, parts)

    def decide_alone(self, decide: Callable[[Context], Decision[Any]]) -> Decision[Any]:
        """Take a decision that nobody asked for: periodic work, activation, the node's own registration."""
        context = self.context
        context.next_offset = self.next_offset
        decision = decide(context)
        if decision.records:
            end_offset = self.appends.append(self, decision.records, decision.atomic)
        else:
            end_offset = context.next_offset
        if decision.after is not None:
            decision.after(end_offset)
        return decision

    def upgrade_kraft_version(self, level: int, validate_only: bool) -> ErrorCode | None:
        """Have the quorum finalize another kraft.version (KIP-853); why it will not, if it will not."""
        epoch = self.active_epoch
        assert epoch is not None
        self.appends.give(self)
        if self.active_epoch != epoch:
            return ErrorCode.NOT_CONTROLLER
        event = raft_events.KRaftVersionUpgradeRequested(self.appends.next_id(), level, epoch, validate_only)
        effects = self.core.step(event, self.now_ms)
        self.perform(effects)
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                return effect.error
        return None

    def not_controller(self) -> Refusal:
        """How Kafka's standby controllers refuse."""
        leader_id = self.core.leader_id
        text = (
            "No controller appears to be active."
            if leader_id is None
            else _NOT_CONTROLLER_TEXT.format(leader_id)
        )
        return Refusal(ErrorCode.NOT_CONTROLLER, text)

    # -- the core

    @property
    def next_offset(self) -> int:
        """Where the next record will be: behind the log, and what is about to be appended to it."""
        return self.core.log_end_offset + len(self.appends)

    def _tell_core(self, event: Event) -> None:
        if self.appends:
            self.appends.give(self)
        self.perform(self.core.step(event, self.now_ms))

    def perform(self, effects: Sequence[Any]) -> None:
        """Take in what the core's effects mean here, and pass on the rest."""
        for effect in effects:
            handler = self._core_effects.get(type(effect))
            if handler is None:
                self._out.append(effect)
            else:
                handler(effect)

    def _on_started(self, event: raft_events.Started) -> None:
        first = self.replay.start()
        if first is not None:
            self.loading.begin_snapshot(self.now_ms)
            self.turns.ask(self)
        self._tell_core(event)

    def _on_shutdown_requested(self, event: raft_events.ShutdownRequested) -> None:
        self._tell_core(event)
        self.ending = True

    def _on_connection_closed(self, event: ConnectionClosed) -> None:
        if self._postponed:
            self._postponed = [c for c in self._postponed if c.connection_id != event.connection_id]
        for call in self.core_answers.closed(event.connection_id):
            self._tell_core(raft_events.RequestAbandoned(call))

    # -- the disk

    def _on_disk_filled(self, event: DiskFilled) -> None:
        """Give the lead to a voter that has room, if there is another; take no decision until there is room.

        What was appended stays, and is written as soon as it can be. Nobody was told that it holds.
        """
        self.disk_full = True
        self.say("error", "the disk is full: no writes until there is room", error=event.text)
        if self.core.is_leader and len(self.core.voters) > 1:
            self._tell_core(raft_events.ResignRequested(self.core.epoch))

    def _on_disk_has_room(self, _: DiskHasRoom) -> None:
        self.disk_full = False
        self.say("info", "the disk has room again: writes go on")

    # -- commits and leadership

    def _on_high_watermark(self, effect: raft_effects.HighWatermarkMoved) -> None:
        high_watermark = effect.high_watermark
        if self.active_epoch is not None:
            self.image.commit(high_watermark - 1)
            self.turns.forget(self)
            for call, parts in self.parked.release(high_watermark):
                self._out.append(Answer(call.connection_id, call.slot, parts, call))
            self.sayings.release(self, high_watermark)
            self._publish(high_watermark)
            self.registration.look(self)
        else:
            self.turns.read_on(self)

    def _publish(self, high_watermark: int) -> None:
        first = self.finalized.epoch < 0
        if not self.finalized.committed(self.image, high_watermark):
            return
        if first:
            self.image.forget_elections()
            self._out.append(ControllerLoaded(high_watermark))
        if self._postponed:
            postponed, self._postponed = self._postponed, []
            for call in postponed:
                self.handle(call)

    def _on_committed_read(self, event: CommittedRead) -> None:
        self.replay.begin(event.offset, event.data)
        self.turns.replay(self)

    def caught_up(self) -> None:
        """Everything that is known to be committed is in the image."""
        self._publish(self.replay.next_offset)
        if self._claimed_epoch is not None and not self.stopping:
            self._claim(self._claimed_epoch)
        self.registration.look(self)

    def _on_reset_log(self, effect: raft_effects.ResetLog) -> None:
        """The log is a leader's snapshot now: read a fresh image from it."""
        self._out += [effect, OpenSnapshot(effect.snapshot_id)]
        self.long.abandon(self)
        self.image = self.context.image = Image()
        self.replay = Replay(self.image, loading=self.loading)
        self.replay.await_snapshot()

    def _on_snapshot_opened(self, event: SnapshotOpened) -> None:
        self.loading.begin_snapshot(self.now_ms)
        self.replay.load(event.snapshot_id, event.runs)
        self.turns.replay(self)

    def _on_controller_answered(self, event: ControllerAnswered) -> None:
        self.registration.on_answer(self, event)

    def _on_leadership(self, effect: raft_effects.LeadershipChanged) -> None:
        if effect.leader_id is not None:
            self.leaders_seen += 1
        if self.active_epoch is not None and not (effect.is_local and effect.epoch == self.active_epoch):
            step_down(self, effect.epoch)
        if effect.is_local:
            self._claimed_epoch = effect.epoch
            if self.replay.complete and not self.stopping:
                self._claim(effect.epoch)
        else:
            self._claimed_epoch = None
            leader = "nobody" if effect.leader_id is None else str(effect.leader_id)
            self.say(
                "info",
                "leader is known" if effect.leader_id is not None else "no leader",
                leader=leader,
                epoch=effect.epoch,
            )
        self.registration.look(self)

    def _claim(self, epoch: int) -> None:
        """Nothing that was committed before the epoch is missing from the image any more."""
        self._claimed_epoch = None
        become_active(self, epoch)

    def _on_voters(self, _: raft_effects.VotersChanged) -> None:
        self.context.kraft_version = self.core.kraft_version
        self.finalized.kraft_version = self.core.kraft_version

    def _on_deadline(self, event: raft_events.DeadlineReached) -> None:
        core_deadline = self.core.deadline_ms()
        if core_deadline is not None and core_deadline <= self.now_ms:
            self._tell_core(event)
        self.periodic.run_due(self)
        if self.registration.deadline_ms is not None and self.registration.deadline_ms <= self.now_ms:
            self.registration.look(self)

    def __repr__(self) -> str:
        role = f"active in epoch {self.active_epoch}" if self.active else "standby"
        return f"<Node {self.identity.node_id} {role}, {len(self.parked)} answers parked, {self.image!r}>"


def _nothing(_: Any) -> None:
    """Effects of the core that others already told of."""
