"""The client node: answers ordinary clients beside a replica of the metadata log, without IO.

An API's file answers at once (`boundary.answer`), from committed metadata (`answer_committed`), in several
callbacks of the loop (`answer_in_slices`), or has another node answer (`passing_on`). Fetches wait in
`fetches`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from kraftd.answers.current_leaders import CurrentLeaders
from kraftd.answers.forwarding import PassingOn
from kraftd.answers.held_answers import HeldAnswers
from kraftd.answers.leader_log import LeaderLog, leaders_log_end
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.purgatory import Purgatory
from kraftd.fetch.sessions import FetchSessions, names_more_than
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.messages.fetch_response import FetchResponse
from kraftd.metadata_topic_node.effects import (
    Answered,
    AnswerFetch,
    ImageReached,
    MetadataMoved,
    ReadClientFrame,
    ScheduleClientSlice,
    TimesLookedUp,
)
from kraftd.metadata_topic_node.large_fetches import MAX_PARTITIONS, in_slices, is_large
from kraftd.metadata_topic_node.log_readers import LogReaders
from kraftd.metadata_topic_node.log_source import METADATA_KEY, Identity, LogSource
from kraftd.metadata_topic_node.routes import client_registry
from kraftd.requests.answer_memo import AnswerMemo
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.events import AnswerNotWritten, ConnectionClosed, FrameRead, FramesReceived, SliceDue
from kraftd.requests.large_requests import Lane, Work
from kraftd.requests.outbox import Outbox
from kraftd.security.authorizer import Authorizer
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

PARTITIONS_PER_CALLBACK = 500  # of fetches that are answered in one event loop callback
LEADER_PATIENCE_MS = 1_000  # with the leader's answer how far its log is, while a fetch waits for it
FETCH_COST = 10  # what a fetch costs beside its partitions, in partitions
COMMITTED = "committed"
# Their answers are made of the request, the image, its leader and constants alone.
KEPT_APIS = (ApiKey.METADATA,)

Slices = Iterator[None]


class ClientNode:
    """One node's client side. A step must not call it again."""

    def __init__(
        self,
        view: ClusterView,
        settings: ClientSettings,
        new_session_id: Callable[[], int],
        authorizer: Authorizer | None = None,
    ) -> None:
        self.view = view
        self.settings = settings
        self.outbox = Outbox()
        self.memo = AnswerMemo(KEPT_APIS, METADATA_TOPIC.encode())
        self.boundary = Boundary(
            client_registry(self, settings.unstable_versions),
            self.outbox,
            Lane(self._schedule_slice, lambda: self.now_ms, ReadClientFrame),
            authorizer=authorizer,
            memo=self.memo,
        )
        self._memo_end_offset = view.image_end_offset  # of the image that the memo's answers describe
        self.source = LogSource(view, self.boundary)
        limits = settings.session_limits._replace(session_partitions=MAX_PARTITIONS)
        self.fetches = ParkedFetches(FetchSessions(self.source, limits, new_session_id))
        self.passing_on = PassingOn(self.boundary, settings.request_timeout_ms)
        self.leader_log = LeaderLog(view, self.outbox, self.passing_on)
        self.held = HeldAnswers()
        self.log_readers = LogReaders()
        self.last_broker_id = -1  # the last to answer a request that was passed on
        self.now_ms = 0
        self._by_commit: Purgatory[tuple[Call, Callable[[], None]]] = Purgatory()  # by the high watermark
        self._epoch = view.epoch  # in which those were made
        self._fetch_calls: dict[int, set[Call]] = {}  # parked, by connection
        self._unloaded: list[Call] = []  # asked before the metadata was known
        self._slices: deque[Slices] = deque()  # of no call: its are in `boundary.large`
        self._slice_scheduled = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            FramesReceived: self._on_frames,
            ConnectionClosed: self._on_connection_closed,
            MetadataMoved: self._on_metadata_moved,
            ImageReached: lambda _: self._release_held(),
            Answered: lambda event: self.passing_on.answered(event, self.now_ms),
            TimesLookedUp: self._on_times_looked_up,
            FrameRead: self.boundary.large.frame_read,
            AnswerNotWritten: self._on_answer_not_written,
            SliceDue: self._on_slice,
            DeadlineReached: self._on_deadline,
        }
        self._looked_up: dict[Call, Callable[[list[tuple[int, int] | None]], None]] = {}

    # -- driving

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the effects, to be performed in order."""
        self.now_ms = now_ms
        self._handlers[type(event)](event)
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        """When DeadlineReached is due; None for never."""
        due = (
            self.fetches.deadline_ms(),
            self.passing_on.deadline_ms(),
            self.held.deadline_ms(),
            self.boundary.large.deadline_ms(),
        )
        return min((one for one in due if one is not None), default=None)

    # -- how calls are answered

    def knows_metadata(self, call: Call) -> bool:
        """Return whether the call can be answered from the image; if not, it is handled again once it can."""
        if self.view.is_loaded:
            return True
        self._unloaded.append(call)
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

    # -- fetches

    def fetch(self, call: Call) -> None:
        """Answer a fetch, or park it. The leader is asked about an offset past the end of a replica's log:
        only past the leader's end it is out of range.
        """
        names_many = names_more_than(call.message, MAX_PARTITIONS)  # then the answer has no records
        if names_many or not self.source.is_past_end(call.message):
            self._fetch(call)
            return

        def then(partition: PartitionData | None) -> None:
            call.settled = False
            if partition is not None and partition.leader_epoch == self.view.epoch:
                self.source.leaders_log_end = leaders_log_end(partition)
            self._guarded(call, lambda: self._fetch(call))
            self.source.leaders_log_end = None

        self.leader_log.ask(call, self.now_ms, then, LEADER_PATIENCE_MS)

    def _fetch(self, call: Call) -> None:
        reader = Identity(call.key, call.principal, call.host, call.client_id)
        if is_large(call.message):
            self._fetch_in_slices(call, reader)
            return
        self._fetch_calls.setdefault(call.connection_id, set()).add(call)
        try:
            done = self.fetches.fetch(call, call.message, call.version, self.now_ms, reader)
        except Exception:
            self._forget_fetch(call)
            raise
        self._complete(done)

    def _fetch_in_slices(self, call: Call, identity: Identity) -> None:
        """Answer a fetch of very many partitions, which closes the session that it names."""
        self._complete(self.fetches.close_session(call.message.session_id, self.now_ms))
        reader = Reader(isolation_level=call.message.isolation_level, identity=identity)
        self.answer_in_slices(call, in_slices(self.source, call, reader))

    def _complete(self, done: list[Completed]) -> None:
        for fetch_id, response in done:
            call: Call = fetch_id  # type: ignore[assignment]
            self._forget_fetch(call)
            if isinstance(response, Exception):
                self.boundary.guard(call, response)
            else:
                self._guarded(call, partial(self._answer_fetch, call, response))

    def _answer_fetch(self, call: Call, response: FetchResponse) -> None:
        CurrentLeaders(self.view, self.settings, call).add_to_fetch(response)
        read = self.source.take(response)
        if read is None:
            self.boundary.answer(call, response)
        else:
            self.outbox.emit(AnswerFetch(call, response, *read))

    def _forget_fetch(self, call: Call) -> None:
        waiting = self._fetch_calls.get(call.connection_id)
        if waiting is not None:
            waiting.discard(call)
            if not waiting:
                del self._fetch_calls[call.connection_id]

    def look_up(
        self, call: Call, then: Callable[[list[tuple[int, int] | None]], None], effect: Effect
    ) -> None:
        """Look times up in the log, and continue with the result."""
        call.settled = True
        self._looked_up[call] = then
        self.outbox.emit(effect)

    # -- events

    def _on_frames(self, event: FramesReceived) -> None:
        end_offset = self.view.image_end_offset
        if end_offset != self._memo_end_offset:
            self._memo_end_offset = end_offset
            self.memo.forget()
        self.boundary.take_in(event)

    def _on_times_looked_up(self, event: TimesLookedUp) -> None:
        then = self._looked_up.pop(event.call, None)
        if then is not None:
            self._guarded(event.call, lambda: then(event.found))

    def _on_answer_not_written(self, event: AnswerNotWritten) -> None:
        call = event.call
        self._looked_up.pop(call, None)
        call.settled = False
        self.boundary.guard(call, event.error)

    def _on_metadata_moved(self, _event: MetadataMoved) -> None:
        view = self.view
        self.memo.forget()
        if self._unloaded and view.is_loaded:
            unloaded, self._unloaded = self._unloaded, []
            for call in unloaded:
                self.boundary.handle(call)
        if view.epoch == self._epoch:
            for call, act in self._by_commit.reach(COMMITTED, view.high_watermark):
                self._guarded(call, act)
        else:  # uncommitted records may never be committed: the answers are made again from the new epoch
            self._epoch = view.epoch
            for call, _act in self._by_commit.complete_all(COMMITTED):
                call.settled = False
                self.boundary.handle(call)
        slots = self.fetches.watching(METADATA_KEY)
        if slots:
            self._go_on(self._wake(slots))

    def _release_held(self) -> None:
        for call, act in self.held.release(self.view.applied_end_offset, self.now_ms):
            self._guarded(call, act)

    def _guarded(self, call: Call, work: Callable[[], None]) -> bool:
        """Continue a call; return whether that succeeded. Otherwise the call was refused."""
        try:
            work()
        except Exception as error:
            call.settled = False
            self.boundary.guard(call, error)
            return False
        return True

    def _wake(self, slots: list[Slot]) -> Slices:
        left = PARTITIONS_PER_CALLBACK
        for slot in slots:
            if left <= 0:
                left = PARTITIONS_PER_CALLBACK
                yield
            left -= FETCH_COST + len(slot.subscriber)
            try:
                done = self.fetches.notify((slot,), self.now_ms)
            except Exception as error:  # no fetch of the session waits
                self.boundary.log_failure("a fetch session failed and was closed", repr(slot), error)
            else:
                self._complete(done)

    def _on_slice(self, _: SliceDue) -> None:
        self._slice_scheduled = False
        self.boundary.large.run_slice()
        if self._slices:
            self._go_on(self._slices.popleft())

    def _go_on(self, slices: Slices) -> None:
        """Do the work of one callback, and keep the rest for the next."""
        if next(slices, _DONE) is not _DONE:
            self._slices.append(slices)
        if self._slices:
            self._schedule_slice()

    def _schedule_slice(self) -> None:
        if not self._slice_scheduled:
            self._slice_scheduled = True
            self.outbox.emit(ScheduleClientSlice())

    def _on_deadline(self, _: DeadlineReached) -> None:
        left = PARTITIONS_PER_CALLBACK
        while left > 0 and (done := self.fetches.expire(self.now_ms, 1)):  # the rest are due, still
            left -= sum(FETCH_COST + _partitions(response) for _fetch_id, response in done)
            self._complete(done)
        self.boundary.large.run_due()
        self.passing_on.run_due(self.now_ms)
        self._release_held()

    def _on_connection_closed(self, event: ConnectionClosed) -> None:
        connection_id = event.connection_id
        self.boundary.large.abandon(connection_id)
        for call in self._fetch_calls.pop(connection_id, ()):
            self.fetches.abandon(call, self.now_ms)
        self.passing_on.closed(connection_id)
        self._unloaded = [call for call in self._unloaded if call.connection_id != connection_id]

    def __repr__(self) -> str:
        return f"<ClientNode, {len(self.fetches)} fetches parked, {self.passing_on!r}>"


def _partitions(response: FetchResponse | Exception) -> int:
    if isinstance(response, Exception):
        return 0
    return sum(len(topic.partitions) for topic in response.responses)


_DONE: Any = object()
