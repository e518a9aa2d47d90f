"""A node that answers clients from the image of a replica, without IO: what all such nodes share.

An API's file answers at once (`boundary.answer`), from committed metadata (`answer_committed`), in several
callbacks of the loop (`answer_in_slices`), or has another node answer (`forwarding`). A node of one kind of
listener adds its own events, and what it does when the metadata moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

from kraftd.answers.current_leaders import CurrentLeaders
from kraftd.answers.effects import (
    Answered,
    AnswersSent,
    ImageReached,
    MetadataMoved,
    NodeStarted,
    StopRequested,
)
from kraftd.answers.forwarding import PassingOn
from kraftd.answers.held_answers import HeldAnswers
from kraftd.answers.leader_log import LeaderLog
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.fetch.purgatory import Purgatory
from kraftd.fetch.session_cache import SessionCache
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.ground.ticks import earliest_ms
from kraftd.replica.next_slice import NextSlice
from kraftd.requests.answer_memo import AnswerMemo
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.events import (
    AnswerNotWritten,
    CallHandedOver,
    ConnectionClosed,
    FrameRead,
    FramesReceived,
    SliceDue,
)
from kraftd.requests.holds import Work
from kraftd.requests.large_requests import Lane
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry
from kraftd.requests.waiting_calls import WaitingCalls
from kraftd.security.authorizer import Authorizer
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

COMMITTED = "committed"
# Their answers are made of the request, the image, its leader and constants alone.
KEPT_APIS = (ApiKey.METADATA,)
# Their handlers may set `Call.again` or `Call.varied`.
REPEATED_APIS = (ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT)

Slices = Iterator[None]


class AnsweringNode:
    """One node's client side. A step must not call it again.

    `registry` makes the registry of its listeners, whose handlers get this node.
    """

    is_broker = False

    def __init__(
        self,
        view: ClusterView,
        settings: ClientSettings,
        registry: Callable[[Any], Registry],
        authorizer: Authorizer | None = None,
    ) -> None:
        self.view = view
        self.settings = settings
        self.outbox = Outbox()
        self._next_slice = NextSlice(self.outbox)
        self.memo = AnswerMemo(KEPT_APIS, METADATA_TOPIC.encode(), REPEATED_APIS)
        self.boundary = Boundary(
            registry(self),
            self.outbox,
            Lane(self._next_slice.schedule, lambda: self.now_ms),
            authorizer=authorizer,
            memo=self.memo,
        )
        self._memo_end_offset = view.image_end_offset  # of the image that the memo's answers describe
        self.passing_on = PassingOn(self.boundary, settings.request_timeout_ms)
        self.leader_log = LeaderLog(view, self.outbox, self.passing_on)
        self.held = HeldAnswers()
        self.now_ms = 0
        self._by_commit: Purgatory[tuple[Call, Callable[[], None]]] = Purgatory()  # by the high watermark
        self._epoch = view.epoch  # in which those were made
        self._waiting = WaitingCalls(self.boundary)
        self.serves_consumer_groups: Callable[[], bool] = lambda: False  # a broker's coordinator knows
        self.serves_share_groups: Callable[[], bool] = lambda: False  # likewise
        # The only deadline that the step of another node's answer can have set; None if it can be any.
        self.sole_deadline_ms: Callable[[Answered], int | None] = lambda event: None
        self._slices: deque[Slices] = deque()  # of no call: its are in `boundary.large`
        self._after_answers: list[Slices] = []
        self.handlers: dict[type, Callable[[Any], None]] = {
            FramesReceived: self._on_frames,
            CallHandedOver: lambda event: self.boundary.handle(event.call),
            ConnectionClosed: lambda event: self.on_connection_closed(event.connection_id),
            MetadataMoved: lambda _: self.on_metadata_moved(),
            ImageReached: lambda _: self._release_held(),
            Answered: self.on_answered,
            FrameRead: self.boundary.large.frame_read,
            AnswerNotWritten: self.on_answer_not_written,
            SliceDue: self._on_slice,
            AnswersSent: lambda _: self._on_answers_sent(),
            DeadlineReached: lambda _: self.on_deadline(),
            NodeStarted: lambda _: self.on_started(),
            StopRequested: lambda _: self.on_stop_requested(),
        }

    # -- driving

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the effects, to be performed in order."""
        self.now_ms = now_ms
        self.handlers[type(event)](event)
        return self.outbox.take()

    def deadlines_ms(self) -> list[int | None]:
        """When the parts of the node are due."""
        return [self.passing_on.deadline_ms(), self.held.deadline_ms(), self.boundary.large.deadline_ms()]

    def deadline_ms(self) -> int | None:
        """When DeadlineReached is due; None for never."""
        return earliest_ms(*self.deadlines_ms())

    def on_started(self) -> None:
        """Begin what the node does by itself."""

    def on_stop_requested(self) -> None:
        """Begin to end it."""

    @property
    def made_nothing_due(self) -> bool:
        """Return whether the last requests that arrived, and what followed, have set no deadline."""
        return False

    @property
    def has_ended(self) -> bool:
        """Return whether the process may end, as far as this node is concerned."""
        return True

    # -- how calls are answered

    @property
    def is_ready(self) -> bool:
        """Return whether calls can be answered from the image."""
        return self.view.is_loaded

    def knows_metadata(self, call: Call) -> bool:
        """Return whether the call can be answered from the image; if not, it is handled again once it can."""
        if self.is_ready:
            return True
        self._waiting.add(call)
        return False

    def when_committed(self, call: Call, act: Callable[[], None]) -> None:
        """Act once everything in the current image is committed."""
        end_offset = self.view.image_end_offset
        if end_offset <= self.view.high_watermark:
            act()
        else:
            call.settled = True
            self._by_commit.park(call, (call, act), [(COMMITTED, end_offset)])

    def answer_committed(self, call: Call, response: Message) -> None:
        """Answer from the current image, once all of it is committed."""
        self.when_committed(call, lambda: self.boundary.answer(call, response))

    def answer_in_slices(self, call: Call, making: Generator[None, None, Message]) -> None:
        """Make and encode the answer, in as many event loop callbacks as that takes."""
        call.settled = True
        self.boundary.large.begin(call, self._make(call, making))

    def _make(self, call: Call, making: Generator[None, None, Message]) -> Work:
        try:
            response = yield from making
            errors = yield from self.boundary.count_in_slices(call, response)
            parts = yield from call.frame_in_slices(response)
        except Exception:
            call.settled = False  # so that the guard answers
            raise
        self.when_committed(call, lambda: self._send_made(call, parts, bool(errors)))

    def _send_made(self, call: Call, parts: list[Buffer], has_errors: bool) -> None:
        if not has_errors:
            self.memo.keep(call, parts)
        self.boundary.send(call, parts)

    def current_leaders(self, call: Call) -> CurrentLeaders:
        """The leaders of partitions, for the refusals of a call."""
        return CurrentLeaders(self.view, self.settings, call)

    def create_missing(self, call: Call, topic: str) -> bool:
        """Have a topic created that a client may describe and that is not there, where the node does that.
        Return whether the client may.
        """
        return True

    def note_log_reader(self, call: Call) -> None:
        """Note that a client asks for the metadata topic alone."""

    @property
    def session_cache(self) -> SessionCache | None:
        """The fetch sessions of clients, if the node serves any."""
        return None

    def took(self, elapsed_ns: int) -> None:
        """Note how long the last step has held the event loop, for quotas."""

    # -- events

    def _on_frames(self, event: FramesReceived) -> None:
        end_offset = self.view.image_end_offset
        if end_offset != self._memo_end_offset:
            self._memo_end_offset = end_offset
            self.memo.forget()
        self.boundary.take_in(event)

    def on_answer_not_written(self, event: AnswerNotWritten) -> None:
        """Refuse a call whose answer could not be read or written."""
        event.call.settled = False
        self.boundary.guard(event.call, event.error)

    def on_answered(self, event: Answered) -> None:
        """Handle the answer of another node to a call that was passed on."""
        self.passing_on.answered(event, self.now_ms)

    def passes_over_commit(self) -> bool:
        """Return whether MetadataMoved would change nothing, after a high watermark that moved alone."""
        return False

    @property
    def waits_for_commits(self) -> bool:
        """Return whether calls wait for metadata, or for its commit."""
        return bool(self._waiting or self._by_commit)

    def on_metadata_moved(self) -> None:
        """Continue the calls that waited for this change."""
        view = self.view
        self.memo.forget()
        if self.is_ready:
            self._waiting.handle_all()
        if view.epoch == self._epoch:
            for call, act in self._by_commit.reach(COMMITTED, view.high_watermark):
                self.guarded(call, act)
        else:  # uncommitted records may never be committed: the answers are made again from the new epoch
            self._epoch = view.epoch
            for call, _act in self._by_commit.complete_all(COMMITTED):
                call.settled = False
                self.boundary.handle(call)

    def _release_held(self) -> None:
        for call, act in self.held.release(self.view.applied_end_offset, self.now_ms):
            self.guarded(call, act)

    def guarded(self, call: Call, work: Callable[[], None]) -> bool:
        """Continue a call; return whether that succeeded. Otherwise the call was refused."""
        try:
            work()
        except Exception as error:
            call.settled = False
            self.boundary.guard(call, error)
            return False
        return True

    def _on_slice(self, _: SliceDue) -> None:
        self._next_slice.started()
        self.boundary.large.run_slice()
        if self._slices:
            self.go_on(self._slices.popleft())

    def go_on(self, slices: Slices) -> None:
        """Do the work of one callback, and keep the rest for the next."""
        if next(slices, _DONE) is not _DONE:
            self._slices.append(slices)
        if self._slices:
            self._next_slice.schedule()

    def go_on_later(self, slices: Slices) -> None:
        """Do the work of one callback once the answers of this step have left, and keep the rest."""
        self._after_answers.append(slices)

    @property
    def wants_answers_sent(self) -> bool:
        """Return whether AnswersSent is due once the effects of a step are performed."""
        return bool(self._after_answers)

    def _on_answers_sent(self) -> None:
        works, self._after_answers = self._after_answers, []
        for slices in works:
            self.go_on(slices)

    def on_deadline(self) -> None:
        """Do what is due."""
        self.boundary.large.run_due()
        self.passing_on.run_due(self.now_ms)
        self._release_held()

    def on_connection_closed(self, connection_id: int) -> None:
        """Forget the calls of a lost connection."""
        self.boundary.connection_closed(connection_id)
        self.memo.repeated.closed(connection_id)
        self.passing_on.closed(connection_id)
        self._waiting.abandon(connection_id)


_DONE: Any = object()
