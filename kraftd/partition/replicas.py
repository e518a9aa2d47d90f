"""What a leader knows of its followers: where each one's log ends, and when it last had all that the leader
had."""

from __future__ import annotations

from typing import Protocol

from kraftd.partition.producer_entry import NO_OFFSET

NO_BROKER_EPOCH = -1


class FetchTimes(Protocol):
    """A follower's fetches of a partition. Those that change nothing are not noted one by one."""

    @property
    def last_fetch_ms(self) -> int: ...


class NoFetches:
    """A follower that has not fetched."""

    last_fetch_ms = -1


NO_FETCHES: FetchTimes = NoFetches()


class FollowerProgress:
    """A follower as its fetches show it (Kafka's ReplicaState).

    `broker_epoch` is None until it has fetched from this leader, and NO_BROKER_EPOCH if its fetches name
    none. `times` are those of the session that it fetches with.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "times",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_start_offset = NO_OFFSET
        self.log_end_offset = NO_OFFSET
        self.last_fetch_leader_end = 0
        self.last_fetch_ms = 0
        self.last_caught_up_ms = 0
        self.broker_epoch: int | None = None
        self.times = NO_FETCHES

    def __repr__(self) -> str:
        return f"<Follower {self.broker_id} epoch {self.broker_epoch}, log end {self.log_end_offset}>"

    def begin_epoch(self, now_ms: int, leader_end: int, *, is_new_leader: bool, in_isr: bool) -> None:
        """Begin a leader epoch: a member of the ISR counts as caught up now, others never."""
        self.last_caught_up_ms = now_ms if in_isr else 0
        self.times = NO_FETCHES
        if is_new_leader:
            self.log_start_offset = self.log_end_offset = self.last_fetch_leader_end = NO_OFFSET
            self.last_fetch_ms = 0
            self.broker_epoch = None
        else:
            self.last_fetch_leader_end = leader_end
            self.last_fetch_ms = now_ms if in_isr else 0

    def fetched(
        self,
        fetch_offset: int,
        log_start_offset: int,
        leader_end: int,
        broker_epoch: int,
        now_ms: int,
        times: FetchTimes = NO_FETCHES,
    ) -> None:
        """Note a fetch. One that reaches the leader's end of now, or of the fetch before, shows when the
        follower had everything.
        """
        self.last_caught_up_ms = self.caught_up_ms
        if fetch_offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end:
            fetch_before_ms = max(self.last_fetch_ms, self.times.last_fetch_ms)
            self.last_caught_up_ms = max(self.last_caught_up_ms, fetch_before_ms)
        self.times = times
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    @property
    def caught_up_ms(self) -> int:
        """When it last had everything. A fetch that is not noted found what the noted one before found."""
        if self.log_end_offset >= self.last_fetch_leader_end:
            return max(self.last_caught_up_ms, self.times.last_fetch_ms)
        return self.last_caught_up_ms

    def is_caught_up(self, leader_end: int, now_ms: int, max_lag_ms: int) -> bool:
        """Return whether it has everything, or had it at most the maximum lag ago."""
        return leader_end == self.log_end_offset or now_ms - self.caught_up_ms <= max_lag_ms
