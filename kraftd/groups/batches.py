"""The batches that a shard has made and that are not all in the log yet."""

from __future__ import annotations

from collections import deque

from kraftd.groups.records import KeyAndValue
from kraftd.named_tuple import NamedTuple

BATCH_BYTES = 61  # of a batch without records
RECORD_BYTES = 26  # the most that a record needs besides key and value


class Producer(NamedTuple):
    """Of a transaction; `guard` is that of its verification (KIP-890)."""

    producer_id: int = -1
    producer_epoch: int = -1
    guard: int = 0


NO_PRODUCER = Producer()


class Batch:
    """Records that are appended together, from `base_offset` on; `marker` is of a transaction's end."""

    __slots__ = ("base_offset", "batch_id", "is_sent", "marker", "producer", "records", "size_bytes")

    def __init__(self, batch_id: int, base_offset: int, producer: Producer = NO_PRODUCER) -> None:
        self.batch_id = batch_id
        self.base_offset = base_offset
        self.producer = producer
        self.records: list[KeyAndValue] = []
        self.size_bytes = BATCH_BYTES
        self.marker: tuple[int, bool, int] | None = None
        self.is_sent = False

    def __repr__(self) -> str:
        return f"<Batch {self.batch_id} [{self.base_offset}, {self.end_offset}), {self.size_bytes} bytes>"

    @property
    def end_offset(self) -> int:
        return self.base_offset + (len(self.records) if self.marker is None else 1)


def size_of(record: KeyAndValue) -> int:
    """The most that a record takes in a batch, in bytes."""
    key, value = record
    return RECORD_BYTES + len(key) + (0 if value is None else len(value))


class Batches:
    """Batches in order; at most one is on its way to the log, so that a failure leaves no gap.

    What arrives meanwhile goes with the next one.
    """

    __slots__ = ("_last_id", "max_bytes", "next_offset", "queue")

    def __init__(self, next_offset: int, max_bytes: int) -> None:
        self.next_offset = next_offset
        self.max_bytes = max_bytes
        self.queue: deque[Batch] = deque()
        self._last_id = 0

    def __repr__(self) -> str:
        return f"<Batches up to {self.next_offset}, {list(self.queue)}>"

    def open_batch(self, size_bytes: int, producer: Producer = NO_PRODUCER) -> Batch:
        """The batch to which records of this size are added: the last one, if it has room and is not sent."""
        last = self.queue[-1] if self.queue else None
        if (
            last is not None
            and not last.is_sent
            and last.marker is None
            and last.producer is producer is NO_PRODUCER
            and last.size_bytes + size_bytes <= self.max_bytes
        ):
            return last
        return self.begin(producer)

    def begin(self, producer: Producer) -> Batch:
        self._last_id += 1
        batch = Batch(self._last_id, self.next_offset, producer)
        self.queue.append(batch)
        return batch

    def add(self, batch: Batch, record: KeyAndValue, size_bytes: int) -> None:
        """Put a record of that size (`size_of`) into a batch."""
        batch.records.append(record)
        batch.size_bytes += size_bytes
        self.next_offset += 1

    def add_all(self, batch: Batch, records: list[KeyAndValue], size_bytes: int) -> None:
        """Put records into a batch, of that size together."""
        batch.records += records
        batch.size_bytes += size_bytes
        self.next_offset += len(records)

    def to_send(self) -> Batch | None:
        """The next batch to append, unless one is on its way."""
        if not self.queue or self.queue[0].is_sent:
            return None
        self.queue[0].is_sent = True
        return self.queue[0]

    def appended(self, batch_id: int) -> Batch | None:
        """The batch with this id, which is in the log; None if it is not the one on its way."""
        if self.queue and self.queue[0].is_sent and self.queue[0].batch_id == batch_id:
            return self.queue.popleft()
        return None

    def failed(self, batch_id: int) -> int | None:
        """Drop the batch with this id and all after it; return the first offset that is void."""
        if not (self.queue and self.queue[0].is_sent and self.queue[0].batch_id == batch_id):
            return None
        self.next_offset = self.queue[0].base_offset
        self.queue.clear()
        return self.next_offset
