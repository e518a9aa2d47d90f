"""The partitions of one fetch or session, arranged so that a fetch examines few of them.

Kafka walks every cached partition in a fetch. Here a fetch examines the slots that it names and those whose
partition changed (`dirty`). It examines those with an error until the error is gone (`failed`, `not_served`).
Then it reads those that have records (`ready`, a heap by order) until the answer is full. All other slots
cost nothing: each watches its partition, and the partition's next change puts it into `dirty` once.

Fetches and answers are generators that pause after a slice of work (`ground.pace`). Partitions may change
between slices; `under_way` keeps other fetches of the same session out meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import Protocol

from kraftd.fetch.slots import Parked, Slot, SlotKey, slot_bytes
from kraftd.fetch.source import EVERYTHING_BYTES, Availability, PartitionSource, PartitionStatus, Reader
from kraftd.fetch.watchers import Watchers
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.fetch_request import FetchPartition
from kraftd.messages.fetch_response import PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode

SMALLEST_BATCH_BYTES = 61  # a version 2 batch's header: the smallest batch
MAX_MISSES_PER_FETCH = 100  # ready slots whose first batch does not fit, before an answer counts as full
# What a partition costs, in microseconds, for the pace.
NAME_US, EXAMINE_US, READ_US, NOTE_US = 2, 8, 12, 2

NOT_SERVED = Availability(PartitionStatus.NOT_SERVED)
SlotAnswer = tuple[Slot, PartitionData]


class RequestedPartition(NamedTuple):
    """One partition of a request, in the request's order."""

    key: SlotKey
    topic: str | None
    topic_id: Uuid
    partition: FetchPartition


class UnderWay(Protocol):
    """A fetch of a session; `epoch_after` is the session's epoch once it has begun."""

    @property
    def epoch_after(self) -> int: ...


class Subscription:
    """Slots by key. `last_fetch_ms` is the time of the reader's last fetch, -1 before the first.

    `parked` is the fetch that waits, with its caller's id: one at most. `under_way` is the fetch that a slice
    of work belongs to, None between fetches and while one is parked. From the start of a fetch to that of its
    answer, a change is examined at once (`examines_changes`).
    """

    __slots__ = (
        "_failed",
        "_forgotten_count",
        "_next_order",
        "_not_served",
        "_ready",
        "_source",
        "_unsettled",
        "_watchers",
        "available_bytes",
        "dirty",
        "examines_changes",
        "last_fetch_ms",
        "parked",
        "reader",
        "reads_to_log_end",
        "size_bytes",
        "slots",
        "under_way",
    )

    def __init__(self, source: PartitionSource, watchers: Watchers[Slot], reader: Reader) -> None:
        self._source = source
        self._watchers = watchers
        self.reader = reader
        self.reads_to_log_end = reader.is_follower
        self.slots: dict[SlotKey, Slot] = {}
        self.size_bytes = 0
        self.dirty: dict[Slot, None] = {}
        self.available_bytes = 0
        self.parked: tuple[Hashable, Parked] | None = None
        self.examines_changes = False
        self.under_way: UnderWay | None = None
        self.last_fetch_ms = -1
        self._next_order = 0
        self._ready: list[tuple[int, Slot]] = []
        self._forgotten_count = 0  # slots that are still in `_ready`
        self._failed: dict[Slot, None] = {}
        self._not_served: dict[Slot, None] = {}
        self._unsettled: dict[Slot, None] = {}  # examined since the last answer: their marks may be new

    def __len__(self) -> int:
        return len(self.slots)

    def __repr__(self) -> str:
        return (
            f"<Subscription to {len(self.slots)} partitions, {len(self.dirty)} dirty, "
            f"{self.available_bytes} bytes available{', parked' if self.parked else ''}>"
        )

    # -- requests of the reader

    def fetch(
        self,
        requested: Iterable[RequestedPartition | None],
        forgotten: Iterable[SlotKey | None],
        now_ms: int,
        pace: Pace,
    ) -> Slices[None]:
        """Store a request's partitions, and examine them and those that changed."""
        for one in requested:
            if one is not None:
                self.dirty[self._name(one)] = None
            if pace.spent(NAME_US):
                yield
        for key in forgotten:
            if key is not None:
                self._forget(key)
            if pace.spent(NAME_US):
                yield
        # Every answer reports their errors. An unknown id may have a topic by now.
        changed = self.dirty | self._failed | self._not_served
        self.dirty = {}
        self.examines_changes = True
        for slot in changed:
            work_us = EXAMINE_US
            if slot.topic is None:
                self._resolve(slot)
            if self.reads_to_log_end and slot.topic is not None:
                available, follows_us = self._source.fetched(slot, self.reader, now_ms)
                work_us += follows_us
                self._note_available(slot, available)
            else:
                self._examine(slot)
            if pace.spent(work_us):
                yield
        self._unsettled |= changed
        self.last_fetch_ms = now_ms

    def read_as(self, reader: Reader) -> None:
        """Change the reader: every partition must be examined again."""
        if reader != self.reader:
            self.reader = reader
            self.reads_to_log_end = reader.is_follower
            self.dirty = dict.fromkeys(self.slots.values())

    def _name(self, requested: RequestedPartition) -> Slot:
        slot = self.slots.get(requested.key)
        if slot is not None:
            slot.update(requested.partition)
            return slot
        slot = Slot(
            self, requested.key, requested.topic, requested.topic_id, requested.partition, self._take_order()
        )
        self.slots[requested.key] = slot
        self.size_bytes += slot_bytes(requested.key)
        return slot

    def _forget(self, key: SlotKey) -> None:
        slot = self.slots.pop(key, None)
        if slot is None:
            return
        self.size_bytes -= slot_bytes(key)
        slot.left_ms = self.last_fetch_ms
        self._watchers.unwatch(slot)
        self.available_bytes -= slot.available_bytes
        slot.available_bytes = 0
        for places in (self.dirty, self._unsettled, self._failed, self._not_served):
            places.pop(slot, None)
        if slot.is_heaped:
            self._forgotten_count += 1
            if self._forgotten_count * 2 > len(self._ready):
                self._ready = [entry for entry in self._ready if self.slots.get(entry[1].key) is entry[1]]
                heapify(self._ready)
                self._forgotten_count = 0

    def _take_order(self) -> int:
        self._next_order += 1
        return self._next_order

    # -- changes of partitions

    def partition_changed(self, slot: Slot) -> int | None:
        """Note the change; returns the bytes available to the fetch that waits, None if none does.

        As in Kafka a fetch waits beside partitions that are not served, but not for one that ceases to be.
        """
        self.dirty[slot] = None
        if not self.examines_changes:
            self._watchers.unwatch(slot)  # it is dirty already until the next fetch
            return None
        was_served = slot not in self._not_served
        self._examine(slot)
        if was_served and slot in self._not_served:
            return EVERYTHING_BYTES
        return self.progress_bytes

    def note_change(self, slot: Slot) -> None:
        """Note, at once, a change that is to be examined later: the next fetch may come before that."""
        if not self.examines_changes:
            self.dirty[slot] = None

    def marks_moved(self, slot: Slot) -> bool:
        """Note that only the marks moved; return whether this may change what the reader can read. A follower
        reads up to the log end, and learns of the marks with its next answer, as in Kafka.
        """
        if self.reads_to_log_end:
            self.dirty[slot] = None
        return not self.reads_to_log_end

    def _resolve(self, slot: Slot) -> None:
        """Give the slot its topic's name if the id is known by now; as in Kafka, only at a fetch."""
        slot.topic = self._source.topic_name(slot.topic_id)
        self._watchers.unwatch(slot)  # it watches under another key from now on

    def _examine(self, slot: Slot) -> None:
        """Examine the partition and watch it from now on."""
        if slot.topic is None:
            self._note_available(slot, NOT_SERVED)
        else:
            self._note_available(slot, self._source.availability(slot, self.reader))

    def _note_available(self, slot: Slot, available: Availability) -> None:
        status, available_bytes = available
        self.available_bytes += available_bytes - slot.available_bytes
        slot.available_bytes = available_bytes
        if status is not PartitionStatus.SERVED or self._failed or self._not_served:
            _keep(self._failed, slot, status is PartitionStatus.FAILED)
            _keep(self._not_served, slot, status is PartitionStatus.NOT_SERVED)
        if available_bytes > 0 and not slot.is_heaped:
            self._heap(slot)
        if slot.watching is None:
            self._watchers.watch(slot)

    # -- progress of a parked fetch

    @property
    def progress_bytes(self) -> int:
        """The bytes that count towards MinBytes; enough for any if the answer does not wait for bytes."""
        if self._failed or len(self._not_served) == len(self.slots):
            return EVERYTHING_BYTES
        return self.available_bytes

    def unwatch_all(self) -> None:
        """Stop watching: the session is closed, or its answer has no reader."""
        for slot in self.slots.values():
            self._watchers.unwatch(slot)
        if self.under_way is None and self.parked is None:
            self._let_go()

    def end(self, pace: Pace) -> Slices[None]:
        """Stop watching: the answer is complete, and no other fetch follows."""
        slots = self._let_go()
        while slots:
            self._watchers.unwatch(slots.popitem()[1])
            if pace.spent(NAME_US):
                yield

    def _let_go(self) -> dict[SlotKey, Slot]:
        """Forget the slots, and return them. They refer to this subscription, and objects that refer to each
        other are freed by a collection of garbage only, which is rare.
        """
        slots, self.slots = self.slots, {}
        self.dirty, self._failed, self._not_served, self._unsettled, self._ready = {}, {}, {}, {}, []
        return slots

    # -- answering

    def answer_all(self, max_bytes: int, pace: Pace) -> Slices[list[SlotAnswer]]:
        """Every partition, as in a full fetch; those that cannot be served come last."""
        self._settle()
        answers, refused = [], []
        left, taken_bytes = max_bytes, 0
        for slot in self.slots.values():
            if pace.spent(READ_US):
                yield
            if slot in self._not_served:
                data = self._refusal_of(slot)
                refused.append((slot, data))
                slot.order = self._take_order()  # a session keeps the order of its first answer
            else:
                data, size = self._source.read(slot, self.reader, _limit(slot, left), not taken_bytes)
                taken_bytes += size
                left = max(0, left - size)
                answers.append((slot, data))
            slot.note_answer(data, 0)
        self._unsettled.clear()
        return answers + refused

    def answer_changes(self, max_bytes: int, pace: Pace) -> Slices[list[SlotAnswer]]:
        """The partitions with something new, in their order; those that cannot be served come last."""
        self._settle()
        read = yield from self._read_ready(max_bytes, pace)
        for slot in (*self._unsettled, *self._failed):
            if slot not in read and slot not in self._not_served:
                if pace.spent(READ_US):
                    yield
                read[slot] = self._source.read(slot, self.reader, 0, False)
        answers = []
        for slot in sorted(read, key=_order):
            if pace.spent(NOTE_US):
                yield
            data, size = read[slot]
            if slot.note_answer(data, size):
                answers.append((slot, data))
            if size:
                slot.order = self._take_order()  # a slot that returned records is read last from now on
            if slot.available_bytes and not slot.is_heaped:
                self._heap(slot)
        for slot in sorted(self._not_served, key=_order):
            if pace.spent(READ_US):
                yield
            data = self._refusal_of(slot)
            slot.note_answer(data, 0)
            answers.append((slot, data))
        self._unsettled.clear()
        return answers

    def _settle(self) -> None:
        """From now on a change is for the next fetch; what changed before was examined when it did.

        A follower's slots stay dirty, because only a fetch notes its progress; so do those whose id has no
        topic yet, because only a fetch resolves it.
        """
        self.examines_changes = False
        self._unsettled |= self.dirty
        if not self.reads_to_log_end:
            self.dirty = {slot: None for slot in self.dirty if slot.topic is None}

    def _read_ready(self, max_bytes: int, pace: Pace) -> Slices[dict[Slot, tuple[PartitionData, int]]]:
        """Read the slots that have records, in their order, until the answer is full; they leave the heap."""
        read: dict[Slot, tuple[PartitionData, int]] = {}
        left, taken_bytes, misses = max_bytes, 0, 0
        while (
            self._ready
            and misses < MAX_MISSES_PER_FETCH
            and (left >= SMALLEST_BATCH_BYTES or not taken_bytes)
        ):
            if pace.spent(READ_US):
                yield
            slot = heappop(self._ready)[1]
            slot.is_heaped = False
            if self.slots.get(slot.key) is not slot:
                self._forgotten_count -= 1
            elif slot.available_bytes:
                answer = self._source.read(slot, self.reader, _limit(slot, left), not taken_bytes)
                read[slot] = answer
                size = answer[1]
                taken_bytes += size
                left = max(0, left - size)
                misses += not size
        return read

    def _heap(self, slot: Slot) -> None:
        slot.is_heaped = True
        heappush(self._ready, (slot.order, slot))

    def _refusal_of(self, slot: Slot) -> PartitionData:
        if slot.topic is not None:
            return self._source.read(slot, self.reader, 0, False)[0]
        return unknown_id(slot.index)


def unknown_id(index: int) -> PartitionData:
    """The answer for a partition of unknown topic id."""
    return PartitionData(
        partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_ID, high_watermark=-1, records=b""
    )


def _limit(slot: Slot, left: int) -> int:
    return max(0, min(slot.max_bytes, left))


def _keep(places: dict[Slot, None], slot: Slot, is_there: bool) -> None:
    if is_there:
        places[slot] = None
    else:
        places.pop(slot, None)


def _order(slot: Slot) -> int:
    return slot.order
