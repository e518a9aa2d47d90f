"""The delivery of a record, or of a batch of records that were always delivered together."""

from __future__ import annotations

from kraftd.partition.share.states import ACQUIRED, ARCHIVED, AVAILABLE, TRANSITIONS, RecordState

NOBODY = ""  # the member of what is not acquired


class Delivery:
    """State, how often it was delivered, and which member holds it until when.

    A change is pending until the share coordinator has answered. `former` is what it was before, with the
    limit of deliveries then. Nothing else changes it meanwhile, except that it may be archived for good.
    """

    __slots__ = ("count", "former", "is_archived", "is_expired", "lock_ms", "member_id", "state")

    def __init__(
        self, state: RecordState, count: int, member_id: str = NOBODY, lock_ms: int | None = None
    ) -> None:
        self.state = state
        self.count = count
        self.member_id = member_id
        self.lock_ms = lock_ms
        self.former: tuple[RecordState, str, int] | None = None
        self.is_expired = False  # its lock, while a change was pending
        self.is_archived = False

    def __repr__(self) -> str:
        holder = f" by {self.member_id} until {self.lock_ms}" if self.member_id else ""
        pending = f", was {self.former[0].name}" if self.former else ""
        return f"<Delivery {self.count} {self.state.name}{holder}{pending}>"

    @property
    def is_available(self) -> bool:
        return self.state is AVAILABLE and self.former is None

    def copy(self) -> Delivery:
        """One that changes by itself from now on; there is no copy of a pending change."""
        assert self.former is None
        return Delivery(self.state, self.count, self.member_id, self.lock_ms)

    def acquire(self, member_id: str, lock_ms: int) -> None:
        """Deliver it to a member once more."""
        assert self.is_available
        self.state, self.member_id, self.lock_ms = ACQUIRED, member_id, lock_ms
        self.count += 1

    def end(self, state: RecordState, max_count: int) -> RecordState:
        """The member holds it no more. What was delivered for the last time is archived."""
        assert self.former is None
        if state is AVAILABLE and self.count >= max_count:
            state = ARCHIVED
        assert state in TRANSITIONS[self.state]
        self.state, self.member_id = state, NOBODY
        return state

    def release(self, state: RecordState, max_count: int) -> RecordState:
        """End it for good, as its lock's time is over."""
        state = self.end(state, max_count)
        self.lock_ms = None
        return state

    def begin(self, state: RecordState, max_count: int) -> RecordState:
        """End it, pending the share coordinator's answer."""
        former = self.state, self.member_id, max_count
        state = self.end(state, max_count)
        self.former = former
        return state

    def settle(self, is_written: bool) -> None:
        """The share coordinator knows of the change, or does not: then the member holds it on."""
        assert self.former is not None
        (state, member_id, max_count), self.former = self.former, None
        if is_written or self.is_archived:
            self.lock_ms = None
        elif self.is_expired:
            self.state = ARCHIVED if self.count >= max_count else AVAILABLE
            self.member_id, self.lock_ms = NOBODY, None
        else:
            self.state, self.member_id = state, member_id
        self.is_expired = False

    def archive(self) -> None:
        """Deliver it no more, whatever is pending."""
        self.is_archived = True
        self.state, self.member_id, self.lock_ms = ARCHIVED, NOBODY, None
