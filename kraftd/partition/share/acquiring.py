"""Which of the records that were read a member gets, and how many at once (KIP-932, KIP-1206)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.partition.share.aborted import ReadBatch, aborted_batches, without
from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.in_flight import InFlightBatch
from kraftd.partition.share.share_partition import SharePartition
from kraftd.partition.share.states import ACQUIRED, AVAILABLE

FEWEST_DELIVERIES_TO_THROTTLE = 2
LEAST_LIMIT_FOR_LAST_ALONE = 2


class Acquired(NamedTuple):
    """The offsets from first to last, delivered for the count-th time."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1


class ReadRecords(Struct, frozen=True, kw_only=True):
    """What was read for a member from fetch_offset on.

    batch_size: the most records of one answer's batch, unless the log's are larger. max_records: the most to
    acquire; by batches, the last one is taken whole, except with is_record_limit. aborted: producer ids and
    first offsets of aborted transactions, for a reader of committed records.
    """

    member_id: str
    fetch_offset: int
    batches: Sequence[ReadBatch]
    batch_size: int
    max_records: int
    is_record_limit: bool = False
    aborted: Sequence[tuple[int, int]] = ()


def acquire(share: SharePartition, read: ReadRecords, now_ms: int) -> list[Acquired]:
    """Give a member what is available of the records that were read, until their lock's time is over."""
    if not read.batches or read.batches[-1].last_offset < share.start_offset:
        return []
    return Acquiring(share, read, now_ms).run()


class Acquiring:
    """One acquisition; `left` is how many records it may take yet."""

    def __init__(self, share: SharePartition, read: ReadRecords, now_ms: int) -> None:
        self.share = share
        self.read = read
        self.lock_ms = now_ms + share.limits.record_lock_duration_ms
        self.acquired: list[Acquired] = []
        self.first_read = read.batches[0].base_offset
        self.last = read.batches[-1].last_offset
        self.left = min(read.max_records, share.limits.partition_max_record_locks - share.in_flight_count)
        if self.left <= 0 and read.fetch_offset <= share.end_offset:
            # No new record may be locked, but those in flight that are available are.
            self.left = min(read.max_records, share.end_offset - read.fetch_offset + 1)
            self.last = min(self.last, share.end_offset)

    def __repr__(self) -> str:
        return f"<Acquiring {self.acquired}, {self.left} left>"

    def run(self) -> list[Acquired]:
        share = self.share
        if self.left <= 0:
            return []
        base = self.first_read
        self.archive_stale(base)
        if self.last < base:
            return []
        floor = share.in_flight.floor(base)
        if floor is not None and floor.last_offset >= base:
            base = floor.first_offset
        known = share.in_flight.between(min(self.first_read, base), self.last)
        if not known:
            self.take_new(max(base, share.start_offset), self.last)
        else:
            self.take_known(known, base)
        if self.acquired:
            share.gap_moved(self.acquired[-1].last_offset + 1)
        return self.without_aborted()

    def archive_stale(self, base: int) -> None:
        """What is not in the log any more, as compaction removed it, is never delivered."""
        if len(self.share.in_flight) and self.read.fetch_offset < base:
            self.share.archive(self.read.fetch_offset, base - 1, AVAILABLE)

    def add(self, first: int, last: int, count: int) -> None:
        """Note what is acquired; neighbours of single offsets become one."""
        self.acquired.append(Acquired(first, last, count))
        self.left -= last - first + 1

    # -- records in flight

    def take_known(self, known: list[InFlightBatch], base: int) -> None:
        gap = max(base, self.share.start_offset)
        for batch in known:
            if self.left <= 0:
                return
            if self.share.has_gap:
                if gap < batch.first_offset:
                    self.take_new(gap, batch.first_offset - 1)
                gap = batch.last_offset + 1
                if self.left <= 0:
                    return
            if not self.take_batch(batch):
                return
        if self.left > 0 and known[-1].last_offset < self.last:
            self.take_new(known[-1].last_offset + 1, self.last)

    def take_batch(self, batch: InFlightBatch) -> bool:
        """Acquire what is available of a batch; return whether more may be acquired besides."""
        limit_exceeded = self.read.is_record_limit and batch.last_offset - batch.first_offset + 1 > self.left
        is_throttled = self.most_deliveries(batch) >= self.throttle_limit
        if is_throttled and self.acquired:
            return False  # it goes alone, with the next fetch
        is_inside = self.first_read <= batch.first_offset and batch.last_offset <= self.last
        if batch.whole is not None and not batch.whole.is_available:
            return True
        if batch.whole is not None and is_inside and not limit_exceeded and not is_throttled:
            batch.whole.acquire(self.read.member_id, self.lock_ms)
            self.share.lock(batch, batch.whole)
            self.add(batch.first_offset, batch.last_offset, batch.whole.count)
            return True
        self.share.split(batch)
        return not (self.take_offsets(batch) and is_throttled)

    def most_deliveries(self, batch: InFlightBatch) -> int:
        """How often an available record of a batch was delivered, the most."""
        if batch.whole is not None:
            return batch.whole.count if batch.whole.is_available else 0
        counts = (
            delivery.count
            for offset, delivery in batch.offsets.items()
            if self.first_read <= offset <= self.last and delivery.is_available
        )
        return max(counts, default=0)

    @property
    def throttle_limit(self) -> int:
        """So many deliveries make records suspect: fewer are delivered at once."""
        return max(FEWEST_DELIVERIES_TO_THROTTLE, -(-self.share.limits.delivery_count_limit // 2))

    def take_offsets(self, batch: InFlightBatch) -> bool:
        """Acquire single offsets; return whether there were any."""
        limit = self.share.limits.delivery_count_limit
        last_goes_alone = limit > LEAST_LIMIT_FOR_LAST_ALONE
        most: int | None = None
        taken: list[Acquired] = []
        for offset, delivery in batch.offsets.items():
            if not self.first_read <= offset <= self.last or not delivery.is_available:
                continue
            if last_goes_alone and delivery.count == limit - 1 and taken:
                break
            if delivery.count >= self.throttle_limit and most is None:
                most = max(1, len(batch.offsets) >> (delivery.count - self.throttle_limit + 1))
            delivery.acquire(self.read.member_id, self.lock_ms)
            self.share.lock(batch, delivery, offset)
            taken.append(Acquired(offset, offset, delivery.count))
            is_last = last_goes_alone and delivery.count == limit
            is_full = self.read.is_record_limit and len(taken) == self.left
            if is_last or is_full or len(taken) == most:
                break
        for run in runs_of(taken):
            self.add(*run)
        return bool(taken)

    # -- new records

    def take_new(self, first: int, last: int) -> None:
        """Acquire offsets that are not in flight yet, by batches of the log."""
        share = self.share
        if self.left < last - first + 1:
            end = self.end_of_batch(first + self.left - 1)
            last = min(end, last) if share.has_gap else end
        runs = self.batches_of(first, last)
        more = 0
        if self.read.is_record_limit and last - first + 1 > self.left:
            more = last - first + 1 - self.left
            runs = [(first, last - more)]
        for begin, end in runs:
            batch = InFlightBatch(begin, end + more, Delivery(ACQUIRED, 1, self.read.member_id, self.lock_ms))
            share.in_flight.put(batch)
            if more:
                self.hold_part(batch, end)
            else:
                assert batch.whole is not None
                share.lock(batch, batch.whole)
            self.add(begin, end, 1)
        if share.in_flight.first.first_offset == first:
            share.start_offset = first
        share.end_offset = max(share.end_offset, last)

    def hold_part(self, batch: InFlightBatch, last: int) -> None:
        """Of a batch that was read, the member gets the offsets up to one; the others are available."""
        assert batch.whole is not None
        batch.whole.lock_ms = None
        batch.split()
        for offset, delivery in batch.offsets.items():
            if offset > last:
                batch.offsets[offset] = Delivery(AVAILABLE, 0)
            else:
                delivery.lock_ms = self.lock_ms
                self.share.lock(batch, delivery, offset)
        self.share.seeks_available = True

    def end_of_batch(self, offset: int) -> int:
        """The last offset of the batch that an offset is in; the offset itself if it is in none."""
        batch = next(one for one in reversed(self.read.batches) if one.base_offset <= offset)
        return max(batch.last_offset, offset)

    def batches_of(self, first: int, last: int) -> list[tuple[int, int]]:
        """Offsets in batches of about batch_size records, which end where one of the log's ends."""
        runs = []
        if last - first + 1 > self.read.batch_size and not self.read.is_record_limit:
            for batch in self.read.batches:
                if batch.base_offset > last:
                    break
                if batch.base_offset - first >= self.read.batch_size:
                    runs.append((first, batch.base_offset - 1))
                    first = batch.base_offset
        return [*runs, (first, last)]

    # -- aborted transactions

    def without_aborted(self) -> list[Acquired]:
        """Archive what transactions that were aborted have written; the member gets the rest."""
        acquired = self.acquired
        if acquired and self.read.aborted:
            for batch in aborted_batches(self.read.batches, self.read.aborted):
                self.share.archive(batch.base_offset, batch.last_offset, ACQUIRED)
                acquired = [
                    Acquired(*span, one.delivery_count)
                    for one in acquired
                    for span in without(one[:2], batch)
                ]
        return acquired


def runs_of(taken: list[Acquired]) -> list[Acquired]:
    """Neighbouring offsets with one delivery count as one."""
    runs: list[Acquired] = []
    for one in taken:
        last = runs[-1] if runs else None
        if last is not None and last[1:] == (one.first_offset - 1, one.delivery_count):
            runs[-1] = last._replace(last_offset=one.last_offset)
        else:
            runs.append(one)
    return runs
