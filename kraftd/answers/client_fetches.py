"""The fetches of a node's clients: answered or parked, and completed by changes, in slices."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from kraftd.answers.current_leaders import FIRST_FETCH_VERSION
from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchSessions, replica_of
from kraftd.fetch.slots import Slot, Subscriber
from kraftd.fetch.source import PartitionSource
from kraftd.ground.pace import ROW_US, Pace
from kraftd.messages.fetch_response import FetchResponse
from kraftd.requests.call import Call
from kraftd.requests.effects import AnswerRecords, RecordsOf
from kraftd.requests.holds import Work

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode, Slices

FETCH_US = 100  # what a fetch costs beside its partitions, for the pace


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
        self._changed: dict[Subscriber, list[Slot]] = {}  # in this step, and not examined yet
        self._is_expiring = False
        self.at_once_count = 0  # the fetches of consumers that were answered without waiting

    def begin(self, call: Call, reader: Hashable) -> Work:
        """Answer a fetch, or park it."""
        self.calls.setdefault(call.connection_id, set()).add(call)

        def is_wanted() -> bool:
            return call in self.calls.get(call.connection_id, ())

        try:
            done = yield from self.parked.fetch(
                call, call.message, call.version, self._node.now_ms, reader, is_wanted
            )
        except Exception:
            self._forget(call)
            raise
        is_consumers = replica_of(call.message, call.version).replica_id < 0
        if is_consumers and any(fetch_id is call for fetch_id, _ in done):
            self.at_once_count += 1
        yield from self.complete(done)

    def changed(self, key: Hashable) -> None:
        """Notify the fetches that wait for a partition, by (topic, index), or for a topic's id.

        What else this step answers leaves before: the Produce, say, whose records they get.
        """
        self._examine_later(self.parked.watching_change(key))

    def marks_moved(self, key: Hashable) -> None:
        """The same if only the marks of the partition moved: of followers no fetch is complete by that."""
        if watching := self.parked.watching_change(key):
            self._examine_later([slot for slot in watching if slot.subscriber.marks_moved(slot)])

    def grown(self, key: Hashable) -> None:
        """The same if only the partition's log grew: consumers read no further than before."""
        watching = self.parked.watching_change(key)
        self._examine_later([slot for slot in watching if slot.subscriber.reads_to_log_end])

    def _examine_later(self, slots: list[Slot]) -> None:
        if slots and not self._changed:
            self._node.go_on_later(self._wake())
        for slot in slots:
            self._changed.setdefault(slot.subscriber, []).append(slot)

    def complete(self, done: list[Completed]) -> Slices:
        """Answer fetches that are complete."""
        for fetch_id, response in done:
            call: Call = fetch_id  # type: ignore[assignment]
            self._forget(call)
            try:
                if isinstance(response, Exception):
                    raise response
                yield from self._answer(call, response)
            except Exception as error:
                call.settled = False
                self._node.boundary.guard(call, error)

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never, and while it is at work."""
        return None if self._is_expiring else self.parked.deadline_ms()

    def run_due(self) -> None:
        """Answer the fetches that have waited for MaxWaitMs."""
        due_ms = self.deadline_ms()
        if due_ms is not None and due_ms <= self._node.now_ms:
            self._is_expiring = True
            self._node.go_on(self._expire())

    def _expire(self) -> Slices:
        pace = Pace()
        while done := (yield from self.parked.expire(self._node.now_ms, 1)):
            yield from self.complete(done)
            if pace.spent(FETCH_US + ROW_US * sum(map(_partitions, done))):
                yield
        self._is_expiring = False

    def connection_closed(self, connection_id: int) -> None:
        """Forget the fetches of a lost connection."""
        for call in self.calls.pop(connection_id, ()):
            self.parked.abandon(call, self._node.now_ms)

    def _answer(self, call: Call, response: FetchResponse) -> Slices:
        if call.version >= FIRST_FETCH_VERSION:
            yield from self._node.current_leaders(call).add_to_fetch(response, Pace())
        reads = self._take_reads(response)
        if reads:
            self._node.outbox.emit(AnswerRecords(call, response, reads))
        else:
            yield from self._node.boundary.answer_in_slices(call, response)

    def _forget(self, call: Call) -> None:
        waiting = self.calls.get(call.connection_id)
        if waiting is not None:
            waiting.discard(call)
            if not waiting:
                del self.calls[call.connection_id]

    def _wake(self, changed: dict[Subscriber, list[Slot]] | None = None) -> Slices:
        """Examine what changed, the slots of each subscriber together, so that its answer has all of it.

        An answer to a follower leaves before the next subscriber is examined: producers wait for its records.
        """
        if changed is None:
            changed, self._changed = self._changed, {}
        pace = Pace()
        while changed:
            subscriber = next(iter(changed))
            slots = changed.pop(subscriber)
            try:
                done = yield from self.parked.notify(subscriber, slots, self._node.now_ms, pace)
            except Exception as error:  # no fetch of the session waits
                self._node.boundary.log_failure(
                    "a fetch session failed and was closed", repr(slots[0]), error
                )
                continue
            yield from self.complete(done)
            if done and changed and subscriber.reads_to_log_end:
                self._node.go_on_later(self._wake(changed))
                return
            if pace.spent(FETCH_US + ROW_US * len(subscriber)):
                yield

    def __repr__(self) -> str:
        return f"<ClientFetches, {len(self.parked)} parked>"


def _partitions(completed: Completed) -> int:
    response = completed.response
    return 0 if isinstance(response, Exception) else sum(len(one.partitions) for one in response.responses)
