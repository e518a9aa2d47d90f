"""Fetches for members of share groups: what may be acquired is read, or the fetch waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING

from kraftd.broker_node.effects import ReadForShares
from kraftd.broker_node.events import SharesRead
from kraftd.broker_node.share_groups.batches import BatchesRead
from kraftd.broker_node.share_groups.led_partitions import LeadingNode, LedSharePartition, LedSharePartitions
from kraftd.broker_node.share_groups.share_counts import NS_PER_MS, GroupCounts
from kraftd.fetch.purgatory import Purgatory
from kraftd.fetch.share_sessions import Member, TopicIdPartition
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages.share_fetch_response import AcquiredRecords, PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.partition.reading import FetchVerdict, Isolation, judge_fetch
from kraftd.partition.share.acquiring import Acquired, ReadRecords, acquire
from kraftd.types import Uuid
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.requests.call import Call

PARTITION_US = 20  # to look at a share partition
RECORD_US = 2  # to acquire

Rows = dict[TopicIdPartition, PartitionData]


class Demand(NamedTuple):
    """What a member wants: of each partition an equal share of `max_bytes`."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_record_limit: bool
    isolation: Isolation


class ShareFetch:
    """One fetch. `led`: the share partitions that it reads; `errors`: why it does not read others.

    `then` gets the rows of the answer. since_ms: when it began to look for partitions that it may read.
    """

    __slots__ = (
        "call",
        "demand",
        "errors",
        "is_wanted",
        "led",
        "member",
        "since_ms",
        "then",
        "topics",
        "until_ms",
    )

    def __init__(
        self,
        call: Call,
        member: Member,
        demand: Demand,
        since_ms: int,
        until_ms: int,
        then: Callable[[Rows], None],
    ) -> None:
        self.call = call
        self.member = member
        self.demand = demand
        self.since_ms = since_ms
        self.until_ms = until_ms
        self.then = then
        self.topics: dict[Uuid, str] = {}  # their names
        self.led: dict[TopicIdPartition, LedSharePartition] = {}
        self.errors: dict[TopicIdPartition, ErrorCode] = {}
        self.is_wanted = True

    def __repr__(self) -> str:
        return f"<ShareFetch of {self.member}, {len(self.led)} partitions, until {self.until_ms}>"


class Reading:
    """A fetch that reads. By partition: where from, what was read, or an error."""

    __slots__ = ("errors", "fetch", "offsets", "read")

    def __init__(self, fetch: ShareFetch, offsets: dict[TopicIdPartition, int]) -> None:
        self.fetch = fetch
        self.offsets = offsets
        self.read: dict[TopicIdPartition, BatchesRead] = {}
        self.errors: dict[TopicIdPartition, ErrorCode] = {}

    def __repr__(self) -> str:
        return f"<Reading of {self.fetch!r}>"


class ShareFetches:
    """The fetches that wait, by the share partitions and the partitions that may give them records, and those
    that read. expired_count: those that waited for as long as they may.
    """

    def __init__(self, node: LeadingNode) -> None:
        self._node = node
        self._purgatory: Purgatory[ShareFetch] = Purgatory()
        self._readings: dict[int, tuple[Reading, tuple[TopicIdPartition, ...]]] = {}
        self._ids = count()
        self.expired_count = 0
        self._wanted: dict[int, set[ShareFetch]] = {}  # by connection
        self.partitions: LedSharePartitions

    def __len__(self) -> int:
        return len(self._purgatory)

    def __repr__(self) -> str:
        return f"<ShareFetches {len(self)} wait, {len(self._readings)} read>"

    def begin(self, fetch: ShareFetch, topics: Iterable[tuple[TopicIdPartition, str]]) -> Slices[None]:
        """Read what the member may acquire now, or wait. `topics`: partitions, with their names."""
        pace = Pace()
        self._wanted.setdefault(fetch.call.connection_id, set()).add(fetch)
        if fetch.demand.max_records and fetch.demand.max_bytes:
            for place, topic in topics:
                fetch.topics[place[0]] = topic
                self._find(fetch, place, topic)
                if pace.spent(PARTITION_US):
                    yield
        for topic in fetch.topics.values():
            self._node.replicas.traffic.of(topic).share_fetches += 1
        if not fetch.led:
            self._finish(fetch, {})
        elif not self._try(fetch, is_last=fetch.demand.max_wait_ms <= 0):
            self._park(fetch)

    def _find(self, fetch: ShareFetch, place: TopicIdPartition, topic: str) -> None:
        def failed(error: ErrorCode) -> None:
            fetch.errors[place] = error

        key = SharePartitionKey(fetch.member.group_id, *place)
        led = self.partitions.get_or_load(key, topic, fetch.call, failed)
        if isinstance(led, ErrorCode):
            fetch.errors[place] = led
        else:
            fetch.led[place] = led

    # -- waiting

    def _park(self, fetch: ShareFetch) -> None:
        keys = [key for led in fetch.led.values() for key in (led.key, led.place)]
        self._purgatory.park(fetch, fetch, ((key, 0) for key in keys), fetch.until_ms)

    def wake(self, key: SharePartitionKey | tuple[str, int]) -> None:
        """Fetches for a share partition, or for all of a partition (by topic and index), may find records."""
        woken = self._purgatory.complete_all(key)
        if woken:
            self._node.go_on(self._retry(woken))

    def _retry(self, woken: list[ShareFetch]) -> Slices[None]:
        pace = Pace()
        for fetch in woken:
            if fetch.is_wanted and not self._try(fetch, is_last=fetch.until_ms <= self._node.now_ms):
                self._park(fetch)
            if pace.spent(PARTITION_US * len(fetch.led)):
                yield

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return self._purgatory.deadline_ms()

    def run_due(self, now_ms: int) -> None:
        """Answer the fetches that have waited for MaxWaitMs."""
        due = self._purgatory.expire(now_ms)
        if due:
            self.expired_count += len(due)
            self._node.go_on(self._retry(due))

    def connection_closed(self, connection_id: int) -> None:
        """Forget the fetches of a lost connection."""
        for fetch in self._wanted.pop(connection_id, ()):
            fetch.is_wanted = False
            self._purgatory.abandon(fetch)

    # -- reading

    def _try(self, fetch: ShareFetch, *, is_last: bool) -> bool:
        """Read for a fetch if there is enough for it, or if it may not wait; return whether it goes on."""
        offsets = {
            place: led.share.next_fetch_offset()
            for place, led in fetch.led.items()
            if led.is_active and led.reader is None and led.share.can_acquire()
        }
        counts = self.partitions.counts_of(fetch.member.group_id)
        if not offsets:
            if is_last:
                self._note_wait(fetch, counts)
                counts.fetch_ratios.note(0)
                self._finish(fetch, {})
            return is_last
        self._note_wait(fetch, counts)
        reading = Reading(fetch, offsets)
        if not self._begin_reading(reading) and not is_last:
            return False
        counts.fetch_ratios.note(100 * len(offsets) // (len(fetch.led) + len(fetch.errors)))
        for place in offsets:
            fetch.led[place].begin_reading(fetch, self._node.now_ms)
        self._go_on_reading(reading)
        return True

    def _note_wait(self, fetch: ShareFetch, counts: GroupCounts) -> None:
        """Count how long a fetch waited for partitions, since it last found some."""
        counts.acquire_times.note((self._node.now_ms - fetch.since_ms) * NS_PER_MS)
        fetch.since_ms = self._node.now_ms

    def _begin_reading(self, reading: Reading) -> bool:
        """Say what is to be read; return whether that is enough, or an error."""
        fetch, offsets = reading.fetch, reading.offsets
        if fetch.demand.max_bytes < 0:
            reading.errors = dict.fromkeys(offsets, ErrorCode.UNKNOWN_SERVER_ERROR)
            return True
        available_bytes = 0
        shares = equal_shares(fetch.demand.max_bytes, len(offsets))
        for (place, offset), most_bytes in zip(offsets.items(), shares, strict=True):
            led = fetch.led[place]
            hosted = self._node.replicas.get(*led.place)
            if hosted is None or hosted.partition is None or hosted.log is None:
                reading.errors[place] = self._node.missing_partition(*led.place)
                continue
            verdict = judge_fetch(hosted.partition, offset, fetch.demand.isolation)
            if not isinstance(verdict, FetchVerdict):
                reading.errors[place] = verdict
                continue
            available_bytes += min(most_bytes, hosted.log.bytes_between(offset, verdict.end_offset))
            limits = led.share.limits
            most_records = min(fetch.demand.max_records, limits.partition_max_record_locks)
            reading.read[place] = BatchesRead(
                led.topic,
                place[1],
                place[0],
                offset,
                verdict.end_offset,
                most_bytes,
                max(offset, led.share.end_offset) + most_records,
                wants_aborted=fetch.demand.isolation is Isolation.LAST_STABLE,
            )
        return bool(reading.errors) or available_bytes >= fetch.demand.min_bytes

    def _go_on_reading(self, reading: Reading) -> None:
        """Read the next portion of each partition, or acquire what was read."""
        wanted = {
            place: read
            for place, one in reading.read.items()
            if place not in reading.errors and (read := one.next_read()) is not None
        }
        if wanted:
            request_id = next(self._ids)
            self._readings[request_id] = reading, tuple(wanted)
            self._node.outbox.emit(ReadForShares(request_id, tuple(wanted.values())))
        else:
            self._node.go_on(self._acquire(reading))

    def shares_read(self, event: SharesRead) -> None:
        """A portion was read."""
        self._node.go_on(self._take(*self._readings.pop(event.request_id), event))

    def _take(
        self, reading: Reading, places: tuple[TopicIdPartition, ...], event: SharesRead
    ) -> Slices[None]:
        for place, found in zip(places, event.found, strict=True):
            if isinstance(found, ErrorCode):
                reading.errors[place] = found
                continue
            try:
                yield from reading.read[place].add(found)
            except CorruptBatch as error:
                reading.errors[place] = ErrorCode.CORRUPT_MESSAGE
                self._node.outbox.log("error", "records of a share group are damaged", why=str(error))
        self._go_on_reading(reading)

    # -- acquiring

    def _acquire(self, reading: Reading) -> Slices[None]:
        fetch, rows, pace = reading.fetch, Rows(), Pace()
        left_bytes, left_records = fetch.demand.max_bytes, fetch.demand.max_records
        is_first = True
        for place, offset in reading.offsets.items():
            led, row = fetch.led[place], PartitionData(place[1], records=b"")
            rows[place] = row
            if place in reading.errors:
                self._note_error(led, row, reading.errors[place])
                continue
            read = reading.read[place]
            read.limit(left_bytes, is_first=is_first)
            left_bytes -= read.size_bytes
            is_first &= not read.batches
            acquired = self._acquire_of(led, fetch, offset, read, left_records)
            if acquired:
                row.acquired_records = [AcquiredRecords(*one) for one in acquired]
                row.records = read.records(acquired[0].first_offset, acquired[-1].last_offset)
                left_records -= sum(one.size for one in acquired)
            if pace.spent(PARTITION_US + RECORD_US * sum(one.size for one in acquired)):
                yield
        for place in reading.offsets:
            fetch.led[place].end_reading(self._node.now_ms)
        self._finish(fetch, rows)
        for place in reading.offsets:
            self.wake(fetch.led[place].key)

    def _acquire_of(
        self, led: LedSharePartition, fetch: ShareFetch, offset: int, read: BatchesRead, most_records: int
    ) -> list[Acquired]:
        # What a member that is gone acquired would be locked for nothing.
        if not led.is_active or not fetch.is_wanted:
            return []
        demand = fetch.demand
        records = ReadRecords(
            member_id=fetch.member.member_id,
            fetch_offset=offset,
            batches=read.batches,
            batch_size=demand.batch_size,
            max_records=most_records,
            is_record_limit=demand.is_record_limit,
            aborted=read.aborted,
        )
        acquired = acquire(led.share, records, self._node.now_ms)
        for one in acquired:
            led.counts.batch_sizes.note(one.size)
        self.partitions.settle(led)
        return acquired

    def _note_error(self, led: LedSharePartition, row: PartitionData, error: ErrorCode) -> None:
        hosted = self._node.replicas.get(*led.place)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE and hosted is not None and hosted.partition is not None:
            # Records were deleted: the next fetch begins where the log does.
            led.share.log_start_moved(hosted.partition.log_start_offset)
            self.partitions.settle(led)
        else:
            row.error_code = error  # without a text, as from Kafka

    def _finish(self, fetch: ShareFetch, rows: Rows) -> None:
        for place, error in fetch.errors.items():
            rows[place] = PartitionData(place[1], error, records=b"")
        for topic_id in {place[0] for place, row in rows.items() if row.error_code}:
            self._node.replicas.traffic.of(fetch.topics[topic_id]).failed_share_fetches += 1
        wanted = self._wanted.get(fetch.call.connection_id)
        if wanted is not None:
            wanted.discard(fetch)
            if not wanted:
                del self._wanted[fetch.call.connection_id]
        if fetch.is_wanted:
            fetch.is_wanted = False
            fetch.then(rows)


def equal_shares(size_bytes: int, count: int) -> list[int]:
    """Bytes for each of so many partitions: of fewer bytes than partitions, the first ones get one."""
    share, rest = divmod(size_bytes, count)
    if not share:
        return [1] * rest + [0] * (count - rest)
    return [share + rest] + [share] * (count - 1)
