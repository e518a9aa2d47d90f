"""Fetches that wait for MinBytes, at most MaxWaitMs: each under one key, the running sum of its bytes.

A partition's change adds to the sum of the subscriptions that watch it, and completes those that have enough.
A fetch completes once: by bytes, by an error, by its deadline, or because a later fetch of its session
displaced it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from kraftd.fetch.purgatory import Purgatory
from kraftd.fetch.sessions import FetchContext, FetchSessions
from kraftd.fetch.slots import Slot
from kraftd.fetch.subscription import Subscription
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import FetchResponse

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
    ) -> list[Completed]:
        """Answer the fetch or park it; a fetch that it displaces is answered first."""
        context = self.sessions.begin(request, version, now_ms, identity)
        done = self._complete_displaced(context, now_ms)
        if request.max_wait_ms <= 0 or context.is_satisfied or not self._may_park(context):
            return [*done, *self._complete(fetch_id, context, now_ms)]
        subscription = context.subscription
        subscription.is_parked = True
        if context.session is None:
            self._slots_without_session += len(subscription)
        self._purgatory.park(
            fetch_id,
            (fetch_id, context),
            [(subscription, context.min_bytes)],
            now_ms + request.max_wait_ms,
        )
        return done

    def changed(self, key: Hashable, now_ms: int) -> list[Completed]:
        """A partition changed, by (topic name, index); or a topic id became known, by the id."""
        return self.notify(self.watching(key), now_ms)

    def watching(self, key: Hashable) -> list[Slot]:
        """The slots to notify of a change under that key; the caller passes them to `notify` in parts."""
        return self.sessions.watchers.under(key)

    def notify(self, slots: Iterable[Slot], now_ms: int) -> list[Completed]:
        """Notify slots of a change; slots that no longer watch are skipped.

        A fault fails the parked fetch. Without one it is raised, and the session is closed: its reader, which
        might miss the change, begins another.
        """
        done: list[Completed] = []
        for slot in slots:
            if slot.watching is None:
                continue
            subscriber = slot.subscriber
            try:
                progress_bytes = subscriber.partition_changed(slot)
            except Exception as error:
                parked = self._purgatory.complete_all(subscriber)
                if not parked:
                    self.sessions.close_of(subscriber)
                    raise
                for fetch_id, context in parked:
                    self._unpark(context)
                    done.append(_failed(fetch_id, context, error))
                continue
            if progress_bytes is not None:
                done += self._leave(self._purgatory.reach(subscriber, progress_bytes), now_ms)
        return done

    def expire(self, now_ms: int, most: int | None = None) -> list[Completed]:
        """Answer the fetches that have waited for MaxWaitMs, at most `most` of them (None: all)."""
        return self._leave(self._purgatory.expire(now_ms, most), now_ms)

    def close_session(self, session_id: int, now_ms: int) -> list[Completed]:
        """Close the session of that id, if there is one; its parked fetch is answered."""
        return self._complete_subscriptions(self.sessions.close(session_id), now_ms)

    def deadline_ms(self) -> int | None:
        """When `expire` has work next; None for never."""
        return self._purgatory.deadline_ms()

    def abandon(self, fetch_id: Hashable, now_ms: int) -> None:
        """Forget a fetch whose connection is gone; its session stays."""
        parked = self._purgatory.abandon(fetch_id)
        if parked is not None:
            self._unpark(parked[1])
            if parked[1].session is None:
                parked[1].subscription.unwatch_all()

    def _may_park(self, context: FetchContext) -> bool:
        if context.session is not None:
            return True
        return self._slots_without_session + len(context.subscription) <= MAX_PARKED_SLOTS

    def _complete_displaced(self, context: FetchContext, now_ms: int) -> list[Completed]:
        displaced: list[Subscription] = context.displaced
        context.displaced = []
        return self._complete_subscriptions(displaced, now_ms)

    def _complete_subscriptions(self, displaced: list[Subscription], now_ms: int) -> list[Completed]:
        done: list[Completed] = []
        for subscription in displaced:
            done += self._leave(self._purgatory.complete_all(subscription), now_ms)
        return done

    def _leave(self, parked: Iterable[tuple[Hashable, FetchContext]], now_ms: int) -> list[Completed]:
        done: list[Completed] = []
        for fetch_id, context in parked:
            self._unpark(context)
            done += self._complete(fetch_id, context, now_ms)
        return done

    def _complete(self, fetch_id: Hashable, context: FetchContext, now_ms: int) -> list[Completed]:
        """Answer a fetch, or report the fault that prevents it; then those that it has displaced."""
        try:
            completed = Completed(fetch_id, self.sessions.answer(context, now_ms))
        except Exception as error:
            completed = _failed(fetch_id, context, error)
        return [completed, *self._complete_displaced(context, now_ms)]

    def _unpark(self, context: FetchContext) -> None:
        context.subscription.is_parked = False
        if context.session is None:
            self._slots_without_session -= len(context.subscription)


def _failed(fetch_id: Hashable, context: FetchContext, error: Exception) -> Completed:
    """The end of a fetch with a fault on the way to its answer."""
    if context.session is None:
        context.subscription.unwatch_all()
    return Completed(fetch_id, error)
