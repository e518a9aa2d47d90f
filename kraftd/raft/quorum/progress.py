"""How far each replica has fetched, as the leader sees it: log ends, fetch times and caught-up times.

Voters and observers (brokers, replicas that want to join) are kept apart: only voters ever count (S14), and a
replica counts as a voter by its whole key. So a voter's id with a replaced disk is an observer.

A replica whose log ends before what it had acknowledged has lost records, for a leader's log only grows. It
counts again once it has caught up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraftd.raft.quorum.majority import majority_offset
from kraftd.raft.quorum.voters import Listeners, VoterSet, matches
from kraftd.types import ReplicaKey

OBSERVER_SESSION_MS = 300_000  # an observer that has not fetched for this long is forgotten
LIVE_REPLICA_MS = 30_000  # a replica that has fetched within that time is live, as in replica.lag.time.max.ms
CAUGHT_UP_WINDOW_MS = 3_600_000  # a replica that is to join must have been caught up within the last hour


class ReplicaProgress:
    """One replica.  Times are -1 and the end offset None until it fetches in this epoch.

    The end offset is that of its last fetch that fitted this log, as in Kafka; `shown_offset` is that of its
    last fetch. It has shown that it holds the records before `acknowledged`, an offset of this log.
    `is_short` while it has shown less since.
    """

    __slots__ = (
        "acknowledged",
        "end_offset",
        "is_short",
        "key",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "listeners",
        "shown_offset",
    )

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.listeners: Listeners = ()
        self.end_offset: int | None = None
        self.shown_offset: int | None = None
        self.acknowledged = 0
        self.is_short = False
        self.last_fetch_ms = -1
        self.last_fetch_leader_end_offset = -1
        self.last_caught_up_ms = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> bool:
        """Note a fetch at `offset`: the replica's log ends there, synced. Returns whether it went back.

        It is caught up now if that is the leader's end. It counts as caught up at its previous fetch if it
        now has all records that the leader had then.
        """
        went_back = False
        if offset >= self.acknowledged:
            self.acknowledged = offset
            self.is_short = False
        else:
            went_back = not self.is_short or (self.shown_offset is not None and offset < self.shown_offset)
            self.is_short = True
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.last_fetch_leader_end_offset <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = self.shown_offset = offset
        return went_back

    def parted(self, offset: int, shared: int) -> bool:
        """Note a fetch at `offset` that does not fit this log: it is before the log's start, or diverges.
        The logs share at most the records before `shared`. Returns whether the replica went back.
        """
        if shared >= self.acknowledged:
            return False
        went_back = not self.is_short
        self.is_short = True
        self.shown_offset = offset
        return went_back

    @property
    def counted_offset(self) -> int | None:
        """How far this replica counts towards the high watermark; None if it does not count."""
        return None if self.is_short else self.end_offset

    def __repr__(self) -> str:
        return f"<Replica {self.key} end {self.end_offset}, fetched at {self.last_fetch_ms}>"


class Progress:
    """All replicas that a leader knows of."""

    __slots__ = ("local", "observers", "voters")

    def __init__(
        self, local: ReplicaKey, voters: VoterSet, acknowledged: Mapping[ReplicaKey, int] | None = None
    ) -> None:
        self.local = local
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.set_voters(voters)
        for one in self.voters.values():
            one.acknowledged = (acknowledged or {}).get(one.key, 0)

    def set_voters(self, voters: VoterSet) -> None:
        """Put another voter set in force: a removed voter becomes an observer, and an added one keeps its
        progress.
        """
        before, now = self.voters, dict[int, ReplicaProgress]()
        for voter in voters:
            replica = self.find(voter.key) or ReplicaProgress(voter.key)
            self.observers.pop(replica.key, None)
            self.observers.pop(voter.key, None)
            replica.key = voter.key
            replica.listeners = voter.listeners
            now[voter.key.id] = replica
        self.voters = now
        for node_id, replica in before.items():
            if now.get(node_id) is not replica:
                replica.listeners = ()
                self.observers.setdefault(replica.key, replica)

    def find(self, key: ReplicaKey) -> ReplicaProgress | None:
        replica = self.voters.get(key.id)
        if replica is not None and matches(replica.key, key):
            return replica
        return self.observers.get(key)

    def is_voter(self, key: ReplicaKey) -> bool:
        replica = self.voters.get(key.id)
        return replica is not None and matches(replica.key, key)

    def fetched(
        self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: int
    ) -> ReplicaProgress | None:
        """Note a fetch of any replica; one that is not a voter becomes an observer. Returns the replica if it
        went back.
        """
        replica = self.find(key)
        if replica is None:
            replica = self.observers[key] = ReplicaProgress(key)
        return replica if replica.fetched(offset, leader_end_offset, now_ms) else None

    def parted(self, key: ReplicaKey, offset: int, shared: int) -> ReplicaProgress | None:
        """Note a fetch at `offset` that does not fit this log. Returns the replica if it went back."""
        replica = self.find(key)
        return replica if replica is not None and replica.parted(offset, shared) else None

    def waited(self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note that a parked fetch ends its wait: it counts as fetched now, unless a later fetch has shown
        another position.
        """
        replica = self.find(key)
        if replica is not None and replica.shown_offset == offset:
            replica.fetched(offset, leader_end_offset, now_ms)

    def acknowledged(self, high_watermark: int) -> dict[ReplicaKey, int]:
        """By voter, up to which offset it has acknowledged committed records: no later leader lacks these."""
        return {
            one.key: min(one.acknowledged, high_watermark)
            for one in self.voters.values()
            if not matches(one.key, self.local)
        }

    def local_synced(self, end_offset: int) -> None:
        """Note that the leader's own log is synced up to there."""
        replica = self.find(self.local)
        if replica is None:
            replica = self.observers[self.local] = ReplicaProgress(self.local)
        replica.end_offset = end_offset

    def committable(self) -> int | None:
        """The largest offset that a majority of the voters has synced. One that went back does not count."""
        return majority_offset([replica.counted_offset for replica in self.voters.values()])

    def by_descending_end(self) -> Iterator[ReplicaProgress]:
        """The other voters, the most caught up first: the preferred order of successors."""
        others = [one for one in self.voters.values() if not matches(one.key, self.local)]
        others.sort(
            key=lambda one: (-1 if one.end_offset is None else one.end_offset, -one.key.id), reverse=True
        )
        return iter(others)

    def slowest_live_end(self, now_ms: int) -> int | None:
        """The smallest log end of the other live replicas, observers included; None without any."""
        ends = [
            one.end_offset
            for one in (*self.voters.values(), *self.observers.values())
            if one.end_offset is not None
            and one.last_fetch_ms > now_ms - LIVE_REPLICA_MS
            and not matches(one.key, self.local)
        ]
        return min(ends, default=None)

    def forget_silent_observers(self, now_ms: int) -> None:
        for key in [
            key
            for key, replica in self.observers.items()
            if now_ms - replica.last_fetch_ms >= OBSERVER_SESSION_MS and key != self.local
        ]:
            del self.observers[key]

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Return whether an observer may be added as a voter: it has caught up with the leader and still
        fetches.
        """
        replica = self.observers.get(key)
        return (
            replica is not None
            and replica.last_caught_up_ms > 0
            and replica.last_fetch_ms > now_ms - CAUGHT_UP_WINDOW_MS
        )

    def __repr__(self) -> str:
        ends = " ".join(f"{one.key.id}:{one.end_offset}" for one in self.voters.values())
        return f"<Progress voters {ends}, {len(self.observers)} observers>"
