"""A share partition: its offsets, the records in flight, and what the share coordinator has not answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.effects import Change, RecordsAvailable, WriteState
from kraftd.partition.share.in_flight import InFlight, InFlightBatch
from kraftd.partition.share.states import AVAILABLE, TERMINAL, RecordState
from kraftd.wire.error_code import ErrorCode

Then = Callable[[ErrorCode], None]
NO_OFFSET = -1

_FOR_MEMBERS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


def error_for_members(error: ErrorCode) -> ErrorCode:
    """The answer to a member when the share coordinator refuses."""
    return _FOR_MEMBERS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR) if error else ErrorCode.NONE


class ShareLimits(Struct, frozen=True, kw_only=True):
    """Kafka's keys without their ``group.share.`` and ``share.`` (of the group, or else of the broker)."""

    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2000
    record_lock_duration_ms: int = 30_000
    renew_acknowledge_enable: bool = True


Part = tuple[int, int, Delivery]  # first and last offset of a delivery
# When it ends, its number, batch and delivery, and the offset unless it is that of the batch.
Lock = tuple[int, int, InFlightBatch, Delivery, int]


class Pending(Struct):
    """A write that the share coordinator has not answered, with the deliveries that its answer settles."""

    deliveries: list[Part]
    then: Then


class SharePartition:
    """`effects` collects what the owner has to do; `limits` may change at any time.

    complete_count: of the records from the start offset on that are delivered no more. gap_start: until the
    end offset of what was loaded, records from there on may be known neither here nor to the coordinator.
    """

    def __init__(self, limits: ShareLimits, effects: list[Effect]) -> None:
        self.limits = limits
        self.effects = effects
        self.in_flight = InFlight()
        self.start_offset = self.end_offset = 0
        self.state_epoch = 0
        self.complete_count = 0
        self.expired_count = 0  # records whose locks ended
        self.seeks_available = False  # an available record may be before the end offset
        self.gap_start: int | None = None
        self.gap_end = 0
        self._pending: dict[int, Pending] = {}
        self._last_write_id = 0
        self._locks: list[Lock] = []
        self._lock_count = 0

    def __repr__(self) -> str:
        return f"<SharePartition [{self.start_offset}, {self.end_offset}], {len(self.in_flight)} batches>"

    # -- loading

    def load(self, start_offset: int, state_epoch: int, batches: Iterable[Change]) -> None:
        """Begin with what the share coordinator knows. Raises ValueError for batches that cannot be."""
        self.start_offset, self.state_epoch = start_offset, state_epoch
        end = start_offset - 1
        for first, last, state, count in batches:
            if not end < first <= last:
                raise ValueError(f"a batch of the offsets {first} to {last} after {end}")
            if self.gap_start is None and first > end + 1:
                self.gap_start = end + 1
            end = last
            self.in_flight.put(InFlightBatch(first, last, Delivery(state, count)))
            if state in TERMINAL:
                self.complete_count += last - first + 1
        self.end_offset = self.gap_end = end
        if len(self.in_flight):
            self.seeks_available = True
            self.move_start()
        else:
            self.end_offset = start_offset

    @property
    def has_gap(self) -> bool:
        """Return whether there may be records between what was loaded that are not known here."""
        return self.gap_start is not None and self.gap_end == self.end_offset

    def gap_moved(self, offset: int) -> None:
        """All records before an offset are known."""
        if self.gap_start is not None:
            self.gap_start = offset if self.has_gap and offset <= self.gap_end else None

    # -- fetching

    def next_fetch_offset(self) -> int:
        """Where to read next: at the first available record, or after all that are known."""
        if not len(self.in_flight) or self.start_offset > self.in_flight.last.last_offset:
            self.seeks_available = False
            return self.end_offset
        if self.seeks_available:
            found = self._first_available()
            if found is not None:
                return found
            self.seeks_available = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap = self.gap_start if self.has_gap else None
        for batch in self.in_flight:
            if gap is not None:
                if batch.first_offset > gap:
                    return gap
                gap = max(batch.last_offset + 1, gap)
            for first, _, delivery in batch.parts():
                if delivery.is_available:
                    return first
        return None

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if len(self.in_flight) else 0

    def can_acquire(self) -> bool:
        """Return whether a fetch may find records that a member may hold."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < self.limits.partition_max_record_locks

    # -- locks

    def lock(self, batch: InFlightBatch, delivery: Delivery, offset: int = NO_OFFSET) -> None:
        """Watch the time of a delivery: of a whole batch, or of one of its offsets."""
        assert delivery.lock_ms is not None
        self._lock_count += 1
        heappush(self._locks, (delivery.lock_ms, self._lock_count, batch, delivery, offset))

    def split(self, batch: InFlightBatch) -> None:
        """Give each offset of a batch a delivery, and its lock."""
        if batch.whole is None:
            return
        lock_ms, batch.whole.lock_ms = batch.whole.lock_ms, None
        batch.split()
        if lock_ms is not None:
            for offset, delivery in batch.offsets.items():
                delivery.lock_ms = lock_ms
                self.lock(batch, delivery, offset)

    def deadline_ms(self) -> int | None:
        """When the next lock ends; None for never."""
        while self._locks and self._locks[0][3].lock_ms != self._locks[0][0]:
            heappop(self._locks)
        return self._locks[0][0] if self._locks else None

    def take_expired(self, now_ms: int) -> list[tuple[InFlightBatch, Delivery, int]]:
        """The deliveries whose locks end by now."""
        expired = []
        while (due_ms := self.deadline_ms()) is not None and due_ms <= now_ms:
            _, _, batch, delivery, offset = heappop(self._locks)
            expired.append((batch, delivery, offset))
            self.expired_count += 1 if offset != NO_OFFSET else batch.last_offset - batch.first_offset + 1
        return expired

    # -- the share coordinator

    def write(self, deliveries: list[Part], then: Then | None = None) -> None:
        """Tell the share coordinator what deliveries have become; without `then` they are settled already."""
        self._last_write_id += 1
        self._pending[self._last_write_id] = Pending(deliveries if then else [], then or (lambda error: None))
        changes = tuple(Change(first, last, one.state, one.count) for first, last, one in deliveries)
        place = self._last_write_id, self.state_epoch, self.start_offset, self.complete_count
        self.effects.append(WriteState(*place, changes))

    def written(self, write_id: int, error: ErrorCode) -> None:
        """The share coordinator has answered; what it does not know is undone."""
        pending = self._pending.pop(write_id)
        self.settle(pending.deliveries, not error)
        if not error or not pending.deliveries:
            self.move_start()
        pending.then(error_for_members(error))
        self.effects.append(RecordsAvailable())

    def settle(self, deliveries: list[Part], is_written: bool) -> None:
        """Keep pending changes, or undo them."""
        for first, last, delivery in deliveries:
            told = delivery.state
            delivery.settle(is_written)
            if delivery.state is AVAILABLE:
                self.seeks_available = True
                if first < self.start_offset:  # the log start has moved meanwhile
                    self.archive(first, self.start_offset - 1, AVAILABLE)
            if told in TERMINAL and delivery.state not in TERMINAL:
                self.complete_count -= self.counted(first, last)

    # -- offsets

    def counted(self, first: int, last: int) -> int:
        """How many offsets are not before the start offset."""
        return max(0, last - max(first, self.start_offset) + 1)

    def ended(self, first: int, last: int, state: RecordState) -> None:
        """Offsets have changed from acquired to another state."""
        if state in TERMINAL:
            self.complete_count += self.counted(first, last)

    def move_start(self) -> None:
        """Move the start offset past what is delivered no more."""
        done, count = self._done_until()
        if done is None:
            return
        if done == self.in_flight.last.last_offset:
            self.start_offset = self.end_offset = max(self.start_offset, done + 1)
            self.in_flight.clear()
            self.complete_count = 0
            return
        batch = self.in_flight.floor(done)
        following = self.in_flight.after(done)
        assert batch is not None
        if done == batch.last_offset and following is not None:
            start = max(self.start_offset, following.first_offset)
            if self.has_gap and self.gap_start is not None:
                start = min(self.gap_start, start)
            self.in_flight.remove_before(following.first_offset)
        else:
            start = max(self.start_offset, done + 1)
            self.in_flight.remove_before(batch.first_offset)
        self.start_offset = start
        self.complete_count -= count

    def _done_until(self) -> tuple[int | None, int]:
        """The last offset up to which all is settled and delivered no more; and how many offsets from the
        start on that is.
        """
        if self.in_flight.floor(self.start_offset) is None:
            return None, 0  # records before the first batch are not known yet
        done, count = None, 0
        for batch in self.in_flight:
            if self.has_gap and self.gap_start is not None and batch.last_offset >= self.gap_start:
                break
            for first, last, delivery in batch.parts():
                if delivery.former is not None or delivery.state not in TERMINAL:
                    return done, count
                done = last
                count += self.counted(first, last)
        return done, count

    def log_start_moved(self, offset: int) -> None:
        """Records before an offset are not in the log any more."""
        if offset <= self.start_offset:
            return
        if self.gap_start is not None:
            self.gap_start = max(self.gap_start, offset)
        if not len(self.in_flight):
            self.start_offset = self.end_offset = offset
            self.complete_count = 0
            return
        gone = 0
        for batch in self.in_flight.between(self.in_flight.first.first_offset, offset - 1):
            for first, last, delivery in batch.parts():
                if delivery.state in TERMINAL:
                    gone += self.counted(first, min(last, offset - 1))
        before, self.start_offset = self.start_offset, offset
        self.archive(before, offset - 1, AVAILABLE)
        self.complete_count -= gone
        self.end_offset = max(self.end_offset, offset)

    def archive(self, first: int, last: int, state: RecordState) -> None:
        """Deliver the offsets in a state no more."""
        floor = self.in_flight.floor(first)
        begin = first if floor is None else floor.first_offset
        for batch in self.in_flight.between(begin, last):
            if batch.last_offset < first:
                continue
            if batch.whole is not None and not (first <= batch.first_offset and batch.last_offset <= last):
                if batch.whole.state is not state or batch.whole.former is not None:
                    continue
                self.split(batch)
            for one, other, delivery in batch.parts():
                if first <= one and other <= last and delivery.state is state:
                    delivery.archive()
                    self.seeks_available = True
                    self.complete_count += self.counted(one, other)
