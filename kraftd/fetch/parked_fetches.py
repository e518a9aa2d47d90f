"""Fetches that wait for MinBytes, at most MaxWaitMs: one of each subscription, which sums up its bytes.

A partition's change adds to the sum of the subscriptions that watch it, and completes those that have enough.
A fetch completes once: by bytes, by an error, by its deadline, or because a later fetch of its session
displaced it.

What answers fetches is a generator that pauses after each slice of work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from kraftd.fetch.purgatory import Purgatory
from kraftd.fetch.sessions import FetchContext, FetchSessions
from kraftd.fetch.slots import Slot, Subscriber
from kraftd.fetch.source import EVERYTHING_BYTES
from kraftd.fetch.subscription import EXAMINE_US, Subscription
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import FetchResponse
from kraftd.named_tuple import NamedTuple

MAX_PARKED_SLOTS = 1_000_000  # of fetches without a session, which the cache's bounds do not count


class Completed(NamedTuple):
    """A fetch that is answered now, by the caller's id of it; or the fault that prevents its answer."""

    fetch_id: Hashable
    response: FetchResponse | Exception


class ParkedFetches:
    """Fetches by the caller's ids. Each method returns the fetches that it completes."""

    def __init__(self, sessions: FetchSessions) -> None:
        self.sessions = sessions
        self._purgatory: Purgatory[tuple[Hashable, FetchContext]] = Purgatory()
        self._slots_without_session = 0

    def __len__(self) -> int:
        return len(self._purgatory)

    def __repr__(self) -> str:
        return f"<ParkedFetches {len(self)} wait, {self.sessions!r}>"

    def fetch(
        self,
        fetch_id: Hashable,
        request: FetchRequest,
        version: int,
        now_ms: int,
        identity: Hashable = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Slices[list[Completed]]:
        """Answer the fetch or park it; a fetch that it displaces is answered first.

        If it is not wanted any more when it would be parked, it is answered.
        """
        context = yield from self.sessions.begin(request, version, now_ms, identity)
        done: list[Completed] = []
        if context.displaced:
            done = yield from self._complete_displaced(context, now_ms)
        may_wait = request.max_wait_ms > 0 and self._may_park(context) and is_wanted()
        if context.is_satisfied or not may_wait:
            return [*done, *(yield from self._complete(fetch_id, context, now_ms))]
        subscription = context.subscription
        subscription.parked = fetch_id, context
        context.leave()
        if context.session is None:
            self._slots_without_session += len(subscription)
        self._purgatory.park(fetch_id, (fetch_id, context), (), now_ms + request.max_wait_ms)
        return done

    def changed(self, key: Hashable, now_ms: int) -> Slices[list[Completed]]:
        """A partition changed, by (topic name, index); or a topic id became known, by the id."""
        done: list[Completed] = []
        pace = Pace()
        for slot in self.watching(key):
            done += yield from self.notify(slot.subscriber, [slot], now_ms, pace)
        return done

    def watching(self, key: Hashable) -> list[Slot]:
        """The slots to notify of a change under that key; the caller passes them to `notify` in parts."""
        return self.sessions.watchers.under(key)

    def watching_change(self, key: Hashable) -> list[Slot]:
        """The same, after the change: the next fetch of each session knows of it, even before `notify`."""
        slots = self.sessions.watchers.under(key)
        for slot in slots:
            slot.subscriber.note_change(slot)
        return slots

    def notify(
        self, subscriber: Subscriber, slots: Iterable[Slot], now_ms: int, pace: Pace
    ) -> Slices[list[Completed]]:
        """Notify a subscriber of changes of its slots; those that no longer watch are skipped.

        A fault fails the parked fetch. Without one it is raised, and the session is closed: its reader, which
        might miss the change, begins another.
        """
        progress_bytes: int | None = None
        for slot in slots:
            if slot.watching is None:
                continue
            try:
                now_bytes = subscriber.partition_changed(slot)
            except Exception as error:
                parked = self._take_parked(subscriber)
                if not parked:
                    self.sessions.close_of(subscriber)
                    raise
                ((fetch_id, context),) = parked
                self._unpark(context)
                return [_failed(fetch_id, context, error)]
            if progress_bytes != EVERYTHING_BYTES and now_bytes is not None:
                progress_bytes = now_bytes
            if pace.spent(EXAMINE_US):
                yield
        if progress_bytes is None:
            return []
        return (yield from self._leave(self._take_parked(subscriber, progress_bytes), now_ms))

    def expire(self, now_ms: int, most: int | None = None) -> Slices[list[Completed]]:
        """Answer the fetches that have waited for MaxWaitMs, at most `most` of them (None: all)."""
        return (yield from self._leave(self._purgatory.expire(now_ms, most), now_ms))

    def close_session(self, session_id: int, now_ms: int) -> Slices[list[Completed]]:
        """Close the session of that id, if there is one; its parked fetch is answered."""
        return (yield from self._complete_subscriptions(self.sessions.close(session_id), now_ms))

    def deadline_ms(self) -> int | None:
        """When `expire` has work next; None for never."""
        return self._purgatory.deadline_ms()

    def abandon(self, fetch_id: Hashable, now_ms: int) -> None:
        """Forget a fetch whose connection is gone; its session stays."""
        parked = self._purgatory.abandon(fetch_id)
        if parked is not None:
            context = parked[1]
            self._unpark(context)
            context.leave()
            if context.session is None:
                context.subscription.unwatch_all()

    def _may_park(self, context: FetchContext) -> bool:
        if context.session is not None:
            return True
        return self._slots_without_session + len(context.subscription) <= MAX_PARKED_SLOTS

    def _complete_displaced(self, context: FetchContext, now_ms: int) -> Slices[list[Completed]]:
        displaced: list[Subscription] = context.displaced
        context.displaced = []
        return (yield from self._complete_subscriptions(displaced, now_ms))

    def _complete_subscriptions(self, displaced: list[Subscription], now_ms: int) -> Slices[list[Completed]]:
        done: list[Completed] = []
        for subscription in displaced:
            done += yield from self._leave(self._take_parked(subscription), now_ms)
        return done

    def _take_parked(
        self, subscriber: Subscriber, progress_bytes: int = EVERYTHING_BYTES
    ) -> list[tuple[Hashable, FetchContext]]:
        """The parked fetch of a subscriber, if it waits for no more bytes; it is parked no longer."""
        waiting = subscriber.parked
        if waiting is None or progress_bytes < waiting[1].min_bytes:
            return []
        parked = self._purgatory.abandon(waiting[0])
        return [] if parked is None else [parked]

    def _leave(self, parked: Sequence[tuple[Hashable, FetchContext]], now_ms: int) -> Slices[list[Completed]]:
        for _, context in parked:
            self._unpark(context)
        done: list[Completed] = []
        for fetch_id, context in parked:
            done += yield from self._complete(fetch_id, context, now_ms)
        return done

    def _complete(self, fetch_id: Hashable, context: FetchContext, now_ms: int) -> Slices[list[Completed]]:
        """Answer a fetch, or report the fault that prevents it; then those that it has displaced."""
        try:
            completed = Completed(fetch_id, (yield from self.sessions.answer(context, now_ms)))
        except Exception as error:
            completed = _failed(fetch_id, context, error)
        if not context.displaced:
            return [completed]
        return [completed, *(yield from self._complete_displaced(context, now_ms))]

    def _unpark(self, context: FetchContext) -> None:
        """A parked fetch is to be answered."""
        subscription = context.subscription
        subscription.parked, subscription.examines_changes = None, False
        if subscription.under_way is None:
            subscription.under_way = context
        if context.session is None:
            self._slots_without_session -= len(subscription)


def _failed(fetch_id: Hashable, context: FetchContext, error: Exception) -> Completed:
    """The end of a fetch with a fault on the way to its answer."""
    context.leave()
    if context.session is None:
        context.subscription.unwatch_all()
    return Completed(fetch_id, error)
