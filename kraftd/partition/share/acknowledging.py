"""What members acknowledge of what they hold, and what happens if they do not (KIP-932, KIP-1222)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftd.ground.refusal import Refusal
from kraftd.named_tuple import NamedTuple
from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.effects import RecordsAvailable
from kraftd.partition.share.in_flight import InFlightBatch
from kraftd.partition.share.share_partition import NO_OFFSET, Part, SharePartition, Then
from kraftd.partition.share.states import ACQUIRED, ARCHIVED, AVAILABLE, RENEW, STATE_AFTER, RecordState
from kraftd.wire.error_code import ErrorCode

INVALID_STATE, INVALID_REQUEST = ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST


class Acknowledgement(NamedTuple):
    """Of the offsets from first to last; one type for all of them, or one each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def type_of(self, offset: int) -> int:
        return self.types[offset - self.first_offset] if len(self.types) > 1 else self.types[0]


def acknowledge(
    share: SharePartition,
    member_id: str,
    acknowledgements: Iterable[Acknowledgement],
    now_ms: int,
    then: Then,
) -> None:
    """Take what a member acknowledges: all of it or nothing. `then` gets NONE once that is kept, or the
    error: INVALID_REQUEST, INVALID_RECORD_STATE for what the member does not hold, or why it is not kept.
    """
    taking = Acknowledging(share, member_id, now_ms)
    error = ErrorCode.NONE
    try:
        for one in acknowledgements:
            taking.take(one)
    except Refusal as refusal:
        error = refusal.code
    taking.finish(error, then)


def release_all(share: SharePartition, member_id: str, now_ms: int, then: Then) -> None:
    """A member's session has ended: what it holds is available again."""
    releasing = Acknowledging(share, member_id, now_ms)
    for batch in list(share.in_flight):
        whole = batch.whole
        if whole is not None and whole.member_id == member_id and releasing.has_start_inside(batch):
            share.split(batch)
        for first, last, delivery in batch.parts():
            if delivery.state is ACQUIRED and delivery.member_id == member_id:
                releasing.begin(first, last, delivery, AVAILABLE)
    releasing.finish(ErrorCode.NONE, then)


def expire(share: SharePartition, now_ms: int) -> None:
    """Make available again what no member has acknowledged in time."""
    parts: list[Part] = []
    limit = share.limits.delivery_count_limit
    for batch, delivery, offset in share.take_expired(now_ms):
        if delivery.former is not None:
            delivery.is_expired = True  # the share coordinator's answer decides
            continue
        ended = [(offset, offset, delivery)]
        if offset == NO_OFFSET:
            if batch.first_offset < share.start_offset <= batch.last_offset:
                share.split(batch)
            ended = batch.parts()
        for first, last, one in ended:
            if one.state is not ACQUIRED:
                continue
            state = one.release(ARCHIVED if last < share.start_offset else AVAILABLE, limit)
            share.seeks_available |= state is AVAILABLE
            share.ended(first, last, state)
            parts.append((first, last, one))
    if parts:
        share.write(parts)
        share.effects.append(RecordsAvailable())


class Acknowledging:
    """The changes of one request; they are pending until the share coordinator knows them."""

    def __init__(self, share: SharePartition, member_id: str, now_ms: int) -> None:
        self.share = share
        self.member_id = member_id
        self.now_ms = now_ms
        self.parts: list[Part] = []

    def __repr__(self) -> str:
        return f"<Acknowledging of {self.member_id}, {len(self.parts)} parts>"

    def take(self, one: Acknowledgement) -> None:
        """Change what is acknowledged. Raises Refusal."""
        if any(type not in STATE_AFTER and type != RENEW for type in one.types):
            raise Refusal(INVALID_REQUEST)
        if one.last_offset < self.share.start_offset:
            return
        for batch in self.batches_of(one):
            if batch.last_offset >= self.share.start_offset:
                self.take_batch(one, batch)

    def batches_of(self, one: Acknowledgement) -> list[InFlightBatch]:
        in_flight, start = self.share.in_flight, self.share.start_offset
        floor = in_flight.floor(one.first_offset)
        if floor is None and one.first_offset < start <= one.last_offset:
            floor = in_flight.floor(start)
        if floor is None:
            raise Refusal(INVALID_STATE)
        batches = in_flight.between(floor.first_offset, one.last_offset)
        if not batches or not one.first_offset <= batches[-1].last_offset >= one.last_offset:
            raise Refusal(INVALID_REQUEST)
        return batches

    def take_batch(self, one: Acknowledgement, batch: InFlightBatch) -> None:
        whole = batch.whole
        if whole is not None:
            self.check(whole)
            is_inside = one.first_offset <= batch.first_offset and batch.last_offset <= one.last_offset
            if is_inside and len(one.types) <= 1 and not self.has_start_inside(batch):
                self.change(batch, batch.first_offset, batch.last_offset, whole, one.types[0])
                return
            self.share.split(batch)
        for offset, delivery in batch.offsets.items():
            if max(one.first_offset, self.share.start_offset) <= offset <= one.last_offset:
                self.check(delivery)
                self.change(batch, offset, offset, delivery, one.type_of(offset))

    def check(self, delivery: Delivery) -> None:
        """Raise Refusal unless the member holds it."""
        is_held = delivery.state is ACQUIRED and delivery.member_id == self.member_id
        if not is_held or delivery.former is not None:
            raise Refusal(INVALID_STATE)

    def change(self, batch: InFlightBatch, first: int, last: int, delivery: Delivery, type: int) -> None:
        if type != RENEW:
            self.begin(first, last, delivery, STATE_AFTER[type])
            return
        limits = self.share.limits
        if not limits.renew_acknowledge_enable:
            raise Refusal(INVALID_STATE)
        delivery.lock_ms = self.now_ms + limits.record_lock_duration_ms
        self.share.lock(batch, delivery, first if batch.whole is None else NO_OFFSET)

    def begin(self, first: int, last: int, delivery: Delivery, state: RecordState) -> None:
        """Change a delivery, pending the share coordinator's answer."""
        if last < self.share.start_offset:
            state = ARCHIVED
        state = delivery.begin(state, self.share.limits.delivery_count_limit)
        self.share.ended(first, last, state)
        self.parts.append((first, last, delivery))

    def has_start_inside(self, batch: InFlightBatch) -> bool:
        return batch.first_offset < self.share.start_offset <= batch.last_offset

    def finish(self, error: ErrorCode, then: Then) -> None:
        """Have the changes kept, or undo them."""
        if error:
            self.share.settle(self.parts, False)
            then(error)
        elif self.parts:
            self.share.write(self.parts, then)
        else:
            then(ErrorCode.NONE)
