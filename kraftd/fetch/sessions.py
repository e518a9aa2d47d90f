"""Incremental fetch sessions (KIP-227): the partitions that a fetch asks for, and the content of its answer.

    context = yield from sessions.begin(request, version, now_ms)   # which partitions, of which session
    if context.is_satisfied: response = yield from sessions.answer(context, now_ms)

Both pause after each slice of work. A fetch that is not satisfied waits in `parked_fetches`. Epoch 0 asks for
all partitions and a session, -1 for all without one; both close the session that they name. 1, 2, … ask for
changes. The rules are those of Kafka's FetchManager and FetchContext; the cost is proportional to the changes
(see `subscription`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from enum import Enum

from kraftd.fetch.session_cache import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION_ID,
    CacheLimits,
    FetchSession,
    SessionCache,
    next_epoch,
)
from kraftd.fetch.slots import Slot, SlotKey, slot_bytes
from kraftd.fetch.source import PartitionSource, Reader
from kraftd.fetch.subscription import NAME_US, RequestedPartition, SlotAnswer, Subscription
from kraftd.fetch.watchers import Watchers
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages.fetch_request import FetchRequest, ReplicaState
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15


class Kind(Enum):
    """The kind of a fetch's answer."""

    FULL = "full"  # all partitions, and a session if the cache has room
    SESSIONLESS = "sessionless"  # all partitions
    INCREMENTAL = "incremental"  # the changes of a session's partitions
    REFUSED = "refused"  # a session error


class FetchContext:
    """One fetch under way. `displaced` are subscriptions whose parked fetch it displaces and so completes."""

    __slots__ = (
        "displaced",
        "epoch_after",
        "error_code",
        "kind",
        "max_bytes",
        "min_bytes",
        "pace",
        "session",
        "subscription",
        "uses_topic_ids",
    )

    def __init__(
        self,
        kind: Kind,
        subscription: Subscription,
        request: FetchRequest,
        uses_topic_ids: bool,
        session: FetchSession | None = None,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.kind = kind
        self.subscription = subscription
        self.session = session
        self.error_code = error_code
        self.uses_topic_ids = uses_topic_ids
        self.max_bytes = max(0, request.max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.epoch_after = next_epoch(request.session_epoch)
        self.displaced: list[Subscription] = []
        self.pace = Pace()
        if subscription.under_way is None:
            subscription.under_way = self

    def leave(self) -> None:
        """Let the next fetch of the session begin: this one is parked, answered or failed."""
        if self.subscription.under_way is self:
            self.subscription.under_way = None

    @property
    def is_satisfied(self) -> bool:
        """Return whether the fetch is answered at once, without regard to its MaxWaitMs."""
        return self.kind is Kind.REFUSED or self.subscription.progress_bytes >= self.min_bytes

    def __repr__(self) -> str:
        return f"<FetchContext {self.kind.value} of {self.session or self.subscription!r}>"


class FetchSessions:
    """The sessions of one listener's fetches, over one source of partitions."""

    def __init__(self, source: PartitionSource, limits: CacheLimits, new_id: Callable[[], int]) -> None:
        self.source = source
        self.cache = SessionCache(limits, new_id)
        self.watchers: Watchers[Slot] = Watchers()

    def __repr__(self) -> str:
        return f"<FetchSessions {self.cache!r}, {self.watchers!r}>"

    def begin(
        self, request: FetchRequest, version: int, now_ms: int, identity: Hashable = None
    ) -> Slices[FetchContext]:
        """Apply the request to its session, and check the partitions that it asks for."""
        uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        replica = replica_of(request, version)
        reader = Reader(
            replica.replica_id, request.isolation_level, identity, replica.replica_epoch, request.rack_id
        )
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return (yield from self._begin_full(request, uses_topic_ids, reader, now_ms))
        while (session := self.cache.get(request.session_id)) and session.is_busy(request.session_epoch):
            yield
        if session is None:
            return self._refused(request, reader, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return self._refused(request, reader, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return self._refused(request, reader, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return (yield from self._begin_incremental(session, request, reader, now_ms))

    def _begin_full(
        self, request: FetchRequest, uses_topic_ids: bool, reader: Reader, now_ms: int
    ) -> Slices[FetchContext]:
        former = self.cache.get(request.session_id)
        kind = Kind.SESSIONLESS if request.session_epoch == FINAL_EPOCH else Kind.FULL
        subscription = Subscription(self.source, self.watchers, reader)
        context = FetchContext(kind, subscription, request, uses_topic_ids)
        if former is not None:
            context.displaced += self._close(former)
        requested = self._requested(request, uses_topic_ids)
        yield from subscription.fetch(requested, (), now_ms, context.pace)
        return context

    def _begin_incremental(
        self, session: FetchSession, request: FetchRequest, reader: Reader, now_ms: int
    ) -> Slices[FetchContext]:
        subscription = session.subscription
        context = FetchContext(Kind.INCREMENTAL, subscription, request, session.uses_topic_ids, session)
        try:
            return (yield from self._continue(session, context, request, reader, now_ms))
        except BaseException:
            context.leave()
            raise

    def _continue(
        self,
        session: FetchSession,
        context: FetchContext,
        request: FetchRequest,
        reader: Reader,
        now_ms: int,
    ) -> Slices[FetchContext]:
        subscription, uses_topic_ids, pace = session.subscription, session.uses_topic_ids, context.pace
        requested: list[RequestedPartition] = []
        fits = not names_more_than(request, self.cache.largest_session)
        if fits:
            grows = False
            for one in self._requested(request, uses_topic_ids):
                if one is not None:
                    requested.append(one)
                    grows = grows or one.key not in subscription.slots
                if pace.spent(NAME_US):
                    yield
            if grows:
                fits = yield from self._may_grow(subscription, requested, pace)
        if not fits or self.cache.get(session.id) is not session:  # closed meanwhile, by another fetch
            context.leave()
            refused = self._refused(request, reader, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            refused.displaced += self.close(session.id)
            return refused
        if subscription.parked is not None:
            context.displaced.append(subscription)  # its fetch is now of a former epoch
        subscription.read_as(reader)
        yield from subscription.fetch(requested, _forgotten(request, uses_topic_ids), now_ms, pace)
        if self.cache.get(session.id) is not session:
            subscription.unwatch_all()
            context.leave()
            refused = self._refused(request, reader, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            refused.displaced = context.displaced
            return refused
        if not subscription.slots:
            self.cache.remove(session)
            alone = Subscription(self.source, self.watchers, reader)
            yield from alone.fetch(requested, (), now_ms, pace)
            emptied = FetchContext(Kind.SESSIONLESS, alone, request, uses_topic_ids)
            emptied.displaced = context.displaced
            context.leave()
            return emptied
        self.cache.touch(session, now_ms)
        session.epoch = next_epoch(session.epoch)
        return context

    def close(self, session_id: int) -> list[Subscription]:
        """Close the session of that id, if there is one; returns the subscriptions that this displaces."""
        session = self.cache.get(session_id)
        return [] if session is None else self._close(session)

    def close_of(self, subscription: object) -> None:
        """Close the session of a subscription that has no parked fetch, if it has a session."""
        for session in [one for one in self.cache if one.subscription is subscription]:
            self._close(session)

    def _close(self, session: FetchSession) -> list[Subscription]:
        """Remove a session; the caller answers its parked fetch with what is available."""
        self.cache.remove(session)
        if session.subscription.parked is not None:
            return [session.subscription]
        session.subscription.unwatch_all()
        return []

    def _may_grow(
        self, subscription: Subscription, requested: list[RequestedPartition], pace: Pace
    ) -> Slices[bool]:
        """Return whether there is room for partitions of a request, some of which are new."""
        added: set[SlotKey] = set()
        added_bytes = 0
        for one in requested:
            if one.key not in subscription.slots and one.key not in added:
                added.add(one.key)
                added_bytes += slot_bytes(one.key)
            if pace.spent(ROW_US):
                yield
        size = len(subscription) + len(added)
        return size <= self.cache.largest_session and self.cache.has_room(len(added), added_bytes)

    def _refused(self, request: FetchRequest, reader: Reader, error_code: ErrorCode) -> FetchContext:
        nothing = Subscription(self.source, self.watchers, reader)
        return FetchContext(Kind.REFUSED, nothing, request, False, None, error_code)

    def _requested(self, request: FetchRequest, uses_topic_ids: bool) -> Iterator[RequestedPartition | None]:
        """The partitions, and None for each topic, since very many may be without any."""
        for topic in request.topics:
            topic_id: Uuid = topic.topic_id
            name = self.source.topic_name(topic_id) if uses_topic_ids else topic.topic
            key: Uuid | str = topic_id if uses_topic_ids else topic.topic
            yield None
            for partition in topic.partitions:
                yield RequestedPartition((key, partition.partition), name, topic_id, partition)

    def answer(self, context: FetchContext, now_ms: int) -> Slices[FetchResponse]:
        """The answer, with a session if the request wants one and the cache has space."""
        try:
            return (yield from self._answer(context, now_ms))
        finally:
            context.leave()

    def _answer(self, context: FetchContext, now_ms: int) -> Slices[FetchResponse]:
        if context.kind is Kind.REFUSED:
            return FetchResponse(error_code=context.error_code)
        subscription, session = context.subscription, context.session
        if session is not None:
            if session.epoch != context.epoch_after:
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
            changes = yield from subscription.answer_changes(context.max_bytes, context.pace)
            responses = _by_topic(changes)
            if self.cache.get(session.id) is not session:
                del changes
                yield from subscription.end(context.pace)
            return FetchResponse(session_id=session.id, responses=responses)
        answers = yield from subscription.answer_all(context.max_bytes, context.pace)
        session_id = self._keep(context, now_ms) if context.kind is Kind.FULL else NO_SESSION_ID
        responses = _by_topic(answers)
        del answers  # the end frees their slots
        if session_id == NO_SESSION_ID:
            yield from subscription.end(context.pace)
        return FetchResponse(session_id=session_id, responses=responses)

    def _keep(self, context: FetchContext, now_ms: int) -> int:
        """Make a session of a full fetch; returns its id, or 0 if the cache has no space for it."""
        subscription = context.subscription
        is_privileged = subscription.reader.is_follower
        size, size_bytes = len(subscription), subscription.size_bytes
        for victim in self.cache.make_room(is_privileged, size, size_bytes, now_ms):
            if victim.subscription.parked is not None:
                context.displaced.append(victim.subscription)
            else:
                victim.subscription.unwatch_all()
        if not self.cache.has_room_for_session(size, size_bytes):
            return NO_SESSION_ID
        return self.cache.create(subscription, is_privileged, context.uses_topic_ids, now_ms).id


def replica_of(request: FetchRequest, version: int) -> ReplicaState:
    """The follower that fetches, with its broker epoch from v15 on; -1 for a consumer."""
    if version < FIRST_VERSION_WITH_REPLICA_STATE:
        return ReplicaState(request.replica_id)
    return request.replica_state


def names_more_than(request: FetchRequest, limit: int) -> bool:
    """Return whether a request names more partitions, to fetch or to forget; a topic without partitions
    counts as one.
    """
    for topics in (request.topics, request.forgotten_topics_data):
        for topic in topics:
            limit -= len(topic.partitions) or 1
            if limit < 0:
                return True
    return False


def _forgotten(request: FetchRequest, uses_topic_ids: bool) -> Iterator[SlotKey | None]:
    """The partitions to forget, and None for each topic."""
    for topic in request.forgotten_topics_data:
        key: Uuid | str = topic.topic_id if uses_topic_ids else topic.topic
        yield None
        for index in topic.partitions:
            yield key, index


def _by_topic(answers: list[SlotAnswer]) -> list[FetchableTopicResponse]:
    """The partitions in their order; neighbours of one topic share its entry."""
    topics: list[FetchableTopicResponse] = []
    last: Uuid | str | None = None
    for slot, data in answers:
        key = slot.key[0]
        if key != last:
            last = key
            topics.append(FetchableTopicResponse(slot.topic or "", slot.topic_id, []))
        topics[-1].partitions.append(data)
    return topics
