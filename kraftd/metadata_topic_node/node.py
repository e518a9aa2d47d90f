"""The node of the metadata log as a topic: answers ordinary clients beside a replica of it, without IO.

What clients ask of every node is in `answers`. Fetches of the metadata log wait in `fetches`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.answers.leader_log import leaders_log_end
from kraftd.answers.node import AnsweringNode, Slices
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.session_cache import SessionCache
from kraftd.fetch.sessions import FetchSessions, names_more_than
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.ground.effect import Effect
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.messages.fetch_response import FetchResponse
from kraftd.metadata_topic_node.effects import TimesLookedUp
from kraftd.metadata_topic_node.large_fetches import MAX_PARTITIONS, in_slices, is_large
from kraftd.metadata_topic_node.log_readers import LogReaders
from kraftd.metadata_topic_node.log_source import METADATA_KEY, Identity, LogSource
from kraftd.requests.call import Call
from kraftd.requests.effects import AnswerRecords
from kraftd.requests.events import AnswerNotWritten
from kraftd.requests.registry import Registry
from kraftd.security.authorizer import Authorizer

PARTITIONS_PER_CALLBACK = 500  # of fetches that are answered in one event loop callback
LEADER_PATIENCE_MS = 1_000  # with the leader's answer how far its log is, while a fetch waits for it
FETCH_COST = 10  # what a fetch costs beside its partitions, in partitions


class MetadataTopicNode(AnsweringNode):
    """One node's client side. A step must not call it again."""

    def __init__(
        self,
        view: ClusterView,
        settings: ClientSettings,
        registry: Callable[[AnsweringNode], Registry],
        new_session_id: Callable[[], int],
        authorizer: Authorizer | None = None,
    ) -> None:
        super().__init__(view, settings, registry, authorizer)
        self.source = LogSource(view, self.boundary)
        limits = settings.session_limits._replace(session_partitions=MAX_PARTITIONS)
        self.fetches = ParkedFetches(FetchSessions(self.source, limits, new_session_id))
        self.log_readers = LogReaders()
        self.last_broker_id = -1  # the last to answer a request that was passed on
        self._fetch_calls: dict[int, set[Call]] = {}  # parked, by connection
        self._looked_up: dict[Call, Callable[[list[tuple[int, int] | None]], None]] = {}
        self.handlers[TimesLookedUp] = self._on_times_looked_up

    def deadlines_ms(self) -> list[int | None]:
        return [self.fetches.deadline_ms(), *super().deadlines_ms()]

    def note_log_reader(self, call: Call) -> None:
        self.log_readers.note(call)
        self.log_readers.warn_of_brokers(call, self.view, self.settings, self.outbox)

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
            self.guarded(call, lambda: self._fetch(call))
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
                self.guarded(call, partial(self._answer_fetch, call, response))

    def _answer_fetch(self, call: Call, response: FetchResponse) -> None:
        self.current_leaders(call).add_to_fetch(response)
        read = self.source.take(response)
        if read is None:
            self.boundary.answer(call, response)
        else:
            self.outbox.emit(AnswerRecords(call, response, (read,)))

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

    @property
    def session_cache(self) -> SessionCache:
        return self.fetches.sessions.cache

    # -- events

    def _on_times_looked_up(self, event: TimesLookedUp) -> None:
        then = self._looked_up.pop(event.call, None)
        if then is not None:
            self.guarded(event.call, lambda: then(event.found))

    def on_answer_not_written(self, event: AnswerNotWritten) -> None:
        self._looked_up.pop(event.call, None)
        super().on_answer_not_written(event)

    def on_metadata_moved(self) -> None:
        super().on_metadata_moved()
        slots = self.fetches.watching(METADATA_KEY)
        if slots:
            self.go_on(self._wake(slots))

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

    def on_deadline(self) -> None:
        left = PARTITIONS_PER_CALLBACK
        while left > 0 and (done := self.fetches.expire(self.now_ms, 1)):  # the rest are due, still
            left -= sum(FETCH_COST + _partitions(response) for _fetch_id, response in done)
            self._complete(done)
        super().on_deadline()

    def on_connection_closed(self, connection_id: int) -> None:
        super().on_connection_closed(connection_id)
        for call in self._fetch_calls.pop(connection_id, ()):
            self.fetches.abandon(call, self.now_ms)

    def __repr__(self) -> str:
        return f"<MetadataTopicNode, {len(self.fetches)} fetches parked, {self.passing_on!r}>"


def _partitions(response: FetchResponse | Exception) -> int:
    if isinstance(response, Exception):
        return 0
    return sum(len(topic.partitions) for topic in response.responses)
