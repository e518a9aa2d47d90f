"""The node of the metadata log as a topic: answers ordinary clients beside a replica of it, without IO.

What clients ask of every node is in `answers`. Fetches of the metadata log wait in `fetches`.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.answers.client_fetches import ClientFetches
from kraftd.answers.leader_log import leaders_log_end
from kraftd.answers.log_source import METADATA_KEY, Identity, LogSource
from kraftd.answers.node import AnsweringNode, Slices
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.fetch.parked_fetches import ParkedFetches
from kraftd.fetch.session_cache import SessionCache
from kraftd.fetch.sessions import names_more_than
from kraftd.fetch.source import Reader
from kraftd.ground.effect import Effect
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.metadata_topic_node.effects import TimesLookedUp
from kraftd.metadata_topic_node.large_fetches import MAX_PARTITIONS, in_slices, is_large
from kraftd.metadata_topic_node.log_readers import LogReaders
from kraftd.requests.call import Call
from kraftd.requests.events import AnswerNotWritten
from kraftd.requests.holds import Work
from kraftd.requests.registry import Registry
from kraftd.security.authorizer import Authorizer

LEADER_WAIT_MS = 1_000  # with the leader's answer how far its log is, while a fetch waits for it


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
        self.client_fetches = ClientFetches(self, self.source, self.source.take, limits, new_session_id)
        self.log_readers = LogReaders()
        self.last_broker_id = -1  # the last to answer a request that was passed on
        self._looked_up: dict[Call, Callable[[list[tuple[int, int] | None]], None]] = {}
        self.handlers[TimesLookedUp] = self._on_times_looked_up

    def deadlines_ms(self) -> list[int | None]:
        return [self.client_fetches.deadline_ms(), *super().deadlines_ms()]

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
            is_current = partition is not None and partition.leader_epoch == self.view.epoch
            end = leaders_log_end(partition) if partition is not None and is_current else None
            self.guarded(call, lambda: self._fetch(call, end))

        self.leader_log.ask(call, self.now_ms, then, LEADER_WAIT_MS)

    @property
    def fetches(self) -> ParkedFetches:
        """The fetches that wait."""
        return self.client_fetches.parked

    def _fetch(self, call: Call, log_end: int | None = None) -> None:
        reader = Identity(call.key, call.principal, call.host, call.client_id)
        if is_large(call.message):
            self._fetch_in_slices(call, reader)
        else:
            self.boundary.large.begin(call, self._begin(call, reader, log_end))

    def _begin(self, call: Call, reader: Identity, log_end: int | None) -> Work:
        """Answer a fetch, or park it, with what the leader says about its log's end."""
        work = self.client_fetches.begin(call, reader)
        while True:
            self.source.leaders_log_end = log_end
            try:
                next(work)
            except StopIteration:
                return
            finally:
                self.source.leaders_log_end = None
            yield

    def _fetch_in_slices(self, call: Call, identity: Identity) -> None:
        """Answer a fetch of very many partitions, which closes the session that it names."""
        self.go_on(self._close_session(call.message.session_id))
        reader = Reader(isolation_level=call.message.isolation_level, identity=identity)
        self.answer_in_slices(call, in_slices(self.source, call, reader))

    def _close_session(self, session_id: int) -> Slices:
        closed = yield from self.fetches.close_session(session_id, self.now_ms)
        yield from self.client_fetches.complete(closed)

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
        self.client_fetches.changed(METADATA_KEY)

    def on_deadline(self) -> None:
        self.client_fetches.run_due()
        super().on_deadline()

    def on_connection_closed(self, connection_id: int) -> None:
        super().on_connection_closed(connection_id)
        self.client_fetches.connection_closed(connection_id)

    def __repr__(self) -> str:
        return f"<MetadataTopicNode, {len(self.fetches)} fetches parked, {self.passing_on!r}>"
