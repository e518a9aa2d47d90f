"""The cache of incremental fetch sessions, and which of them a new one evicts (KIP-227).

The longest idle session is evicted first, if it was idle for two minutes. Otherwise the session of the least
rank, (privileged, partitions, id), is evicted if the new one's rank is higher. So a follower's session may
replace any consumer's or an old follower's; a consumer's session may replace an old consumer's. A session
becomes old at a fetch more than two minutes after its creation. Kafka limits the number of sessions; here
their partitions and bytes are limited as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.fetch.subscription import Subscription
from kraftd.named_tuple import NamedTuple

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION_ID = 0
MAX_EPOCH = 2**31 - 1
EVICTION_MS = 120_000


def next_epoch(epoch: int) -> int:
    """The epoch of the next fetch: it wraps to 1."""
    return 1 if epoch == MAX_EPOCH else epoch + 1


class CacheLimits(NamedTuple):
    """Limits of the cache. `slots` is max.incremental.fetch.session.cache.slots.

    `session_partitions` limits the partitions of one session.
    """

    slots: int = 1000
    partitions: int = 1_000_000
    session_partitions: int = 1_000_000
    size_bytes: int = 1 << 30
    eviction_ms: int = EVICTION_MS


class FetchSession:
    """One session. `epoch` is the one that its next fetch must carry; `cached_size` its partitions at the
    last fetch.
    """

    __slots__ = (
        "cached_bytes",
        "cached_size",
        "created_ms",
        "epoch",
        "id",
        "is_old",
        "is_privileged",
        "last_used_ms",
        "subscription",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        subscription: Subscription,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.subscription = subscription
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.is_old = False
        self.cached_size = 0
        self.cached_bytes = 0

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The rank of a session; the least is evicted first."""
        return self.is_privileged, self.cached_size, self.id

    def is_busy(self, epoch: int) -> bool:
        """Return whether a fetch of that epoch waits for another, which is in slices."""
        other = self.subscription.under_way
        return other is not None and (self.epoch == epoch or self.epoch != other.epoch_after)

    def __repr__(self) -> str:
        kind = "follower" if self.is_privileged else "consumer"
        return (
            f"<FetchSession {self.id} of a {kind}, epoch {self.epoch}, {len(self.subscription)} partitions>"
        )


class SessionCache:
    """Sessions by id. `new_id` draws an unguessable id from 1 to 2147483639; `evictions` counts."""

    def __init__(self, limits: CacheLimits, new_id: Callable[[], int]) -> None:
        self.limits = limits
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}  # in the order of their last use
        self.partitions = 0
        self.size_bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    def __repr__(self) -> str:
        return (
            f"<SessionCache of {len(self)} sessions, {self.partitions} partitions, {self.size_bytes} bytes>"
        )

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def make_room(self, is_privileged: bool, size: int, size_bytes: int, now_ms: int) -> list[FetchSession]:
        """Evict sessions that one of that size may replace, until it fits or none is left."""
        evicted: list[FetchSession] = []
        limits = self.limits
        if size > self.largest_session or size_bytes > limits.size_bytes:
            return evicted  # it does not fit even alone
        while not self.has_room_for_session(size, size_bytes):
            victim = self._victim(is_privileged, size, now_ms)
            if victim is None:
                break
            self.remove(victim)
            self.evictions += 1
            evicted.append(victim)
        return evicted

    @property
    def largest_session(self) -> int:
        """The most partitions of a session that is alone in the cache."""
        return min(self.limits.partitions, self.limits.session_partitions)

    def has_room_for_session(self, size: int, size_bytes: int) -> bool:
        """Return whether another session of that size fits without an eviction."""
        is_small = size <= self.largest_session
        return is_small and len(self._sessions) < self.limits.slots and self.has_room(size, size_bytes)

    def has_room(self, size: int, size_bytes: int) -> bool:
        """Return whether a session may grow by that much."""
        limits = self.limits
        return (
            self.partitions + size <= limits.partitions and self.size_bytes + size_bytes <= limits.size_bytes
        )

    def create(
        self, subscription: Subscription, is_privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession:
        """Create a session of that subscription; the caller has called `make_room`."""
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_SESSION_ID:
            session_id = self._new_id()
        session = FetchSession(session_id, subscription, is_privileged, uses_topic_ids, now_ms)
        self._sessions[session_id] = session
        self._count(session)
        self.touch(session, now_ms)
        return session

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Note a fetch of the session and its new size."""
        subscription = session.subscription
        if len(subscription.slots) != session.cached_size or subscription.size_bytes != session.cached_bytes:
            self._discount(session)
            self._count(session)
        session.last_used_ms = now_ms
        session.is_old = now_ms - session.created_ms > self.limits.eviction_ms
        self._sessions[session.id] = self._sessions.pop(session.id)

    def remove(self, session: FetchSession) -> None:
        del self._sessions[session.id]
        self._discount(session)

    def _count(self, session: FetchSession) -> None:
        session.cached_size = len(session.subscription)
        session.cached_bytes = session.subscription.size_bytes
        self.partitions += session.cached_size
        self.size_bytes += session.cached_bytes

    def _discount(self, session: FetchSession) -> None:
        self.partitions -= session.cached_size
        self.size_bytes -= session.cached_bytes

    def _victim(self, is_privileged: bool, size: int, now_ms: int) -> FetchSession | None:
        if not self._sessions:
            return None
        idle = self._longest_idle()
        if now_ms - idle.last_used_ms > self.limits.eviction_ms:
            return idle
        evictable = [s for s in self if s.is_old or (is_privileged and not s.is_privileged)]
        least = min(evictable, key=_rank, default=None)
        if least is None or (is_privileged, size, NO_SESSION_ID) < least.rank:
            return None
        return least

    def _longest_idle(self) -> FetchSession:
        """The first by (last use, id); sessions are in the order of their last use."""
        longest: FetchSession | None = None
        for session in self._sessions.values():
            if longest is not None and session.last_used_ms > longest.last_used_ms:
                break
            if longest is None or session.id < longest.id:
                longest = session
        assert longest is not None
        return longest


def _rank(session: FetchSession) -> tuple[bool, int, int]:
    return session.rank
