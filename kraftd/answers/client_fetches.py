"""The fetches of a node's clients: answered or parked, and completed by changes, a few in each callback."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchSessions
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import PartitionSource
from kraftd.messages.fetch_response import FetchResponse
from kraftd.requests.call import Call
from kraftd.requests.effects import AnswerRecords, RecordsOf

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode, Slices

PARTITIONS_PER_CALLBACK = 500  # of fetches that are answered in one event loop callback
FETCH_COST = 10  # what a fetch costs beside its partitions, in partitions


class ClientFetches:
    """Fetches over one source. `calls` are those that are parked, by connection.

    `take_reads` removes and returns the records that an answer carries.
    """

    def __init__(
        self,
        node: AnsweringNode,
        source: PartitionSource,
        take_reads: Callable[[FetchResponse], tuple[RecordsOf, ...]],
        limits: CacheLimits,
        new_session_id: Callable[[], int],
    ) -> None:
        self.parked = ParkedFetches(FetchSessions(source, limits, new_session_id))
        self._node = node
        self._take_reads = take_reads
        self.calls: dict[int, set[Call]] = {}

    def begin(self, call: Call, reader: Hashable) -> None:
        """Answer a fetch, or park it."""
        self.calls.setdefault(call.connection_id, set()).add(call)
        try:
            done = self.parked.fetch(call, call.message, call.version, self._node.now_ms, reader)
        except Exception:
            self._forget(call)
            raise
        self.complete(done)

    def changed(self, key: Hashable) -> None:
        """Notify the fetches that wait for a partition, by (topic, index), or for a topic's id."""
        slots = self.parked.watching(key)
        if slots:
            self._node.go_on(self._wake(slots))

    def complete(self, done: list[Completed]) -> None:
        """Answer fetches that are complete."""
        for fetch_id, response in done:
            call: Call = fetch_id  # type: ignore[assignment]
            self._forget(call)
            if isinstance(response, Exception):
                self._node.boundary.guard(call, response)
            else:
                self._node.guarded(call, partial(self._answer, call, response))

    def run_due(self) -> None:
        """Answer some of the fetches that have waited for MaxWaitMs; the rest are still due."""
        left = PARTITIONS_PER_CALLBACK
        while left > 0 and (done := self.parked.expire(self._node.now_ms, 1)):
            left -= sum(FETCH_COST + _partitions(response) for _fetch_id, response in done)
            self.complete(done)

    def connection_closed(self, connection_id: int) -> None:
        """Forget the fetches of a lost connection."""
        for call in self.calls.pop(connection_id, ()):
            self.parked.abandon(call, self._node.now_ms)

    def _answer(self, call: Call, response: FetchResponse) -> None:
        self._node.current_leaders(call).add_to_fetch(response)
        reads = self._take_reads(response)
        if reads:
            self._node.outbox.emit(AnswerRecords(call, response, reads))
        else:
            self._node.boundary.answer(call, response)

    def _forget(self, call: Call) -> None:
        waiting = self.calls.get(call.connection_id)
        if waiting is not None:
            waiting.discard(call)
            if not waiting:
                del self.calls[call.connection_id]

    def _wake(self, slots: list[Slot]) -> Slices:
        left = PARTITIONS_PER_CALLBACK
        for slot in slots:
            if left <= 0:
                left = PARTITIONS_PER_CALLBACK
                yield
            left -= FETCH_COST + len(slot.subscriber)
            try:
                done = self.parked.notify((slot,), self._node.now_ms)
            except Exception as error:  # no fetch of the session waits
                self._node.boundary.log_failure("a fetch session failed and was closed", repr(slot), error)
            else:
                self.complete(done)

    def __repr__(self) -> str:
        return f"<ClientFetches, {len(self.parked)} parked>"


def _partitions(response: FetchResponse | Exception) -> int:
    if isinstance(response, Exception):
        return 0
    return sum(len(topic.partitions) for topic in response.responses)
