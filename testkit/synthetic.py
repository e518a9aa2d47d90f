"""Synthetic partitions for fetch sessions, in tests and benchmarks: batches of one record, in any number."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Availability, PartitionStatus, Reader
from kraftd.messages.fetch_response import EpochEndOffset, PartitionData
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode


def topic_id(number: int) -> Uuid:
    return bytes(8) + (number + 16).to_bytes(8)


RECORDS = memoryview(bytes(1 << 20))


@dataclass(slots=True)
class Partition:
    """A partition with batches of one record each.

    `ends[n]` is the end of the batch of offset n in bytes; a consumer reads below the high watermark.
    """

    ends: list[int] = field(default_factory=lambda: [0])
    log_start_offset: int = 0
    high_watermark: int = 0
    leader_epoch: int = 0
    error_code: int = 0

    @property
    def log_end_offset(self) -> int:
        return len(self.ends) - 1

    def append(self, size_bytes: int) -> None:
        self.ends.append(self.ends[-1] + size_bytes)

    def error_of(self, slot: Slot) -> int:
        if self.error_code:
            return self.error_code
        if 0 <= slot.current_leader_epoch != self.leader_epoch:
            is_old = slot.current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        if not self.log_start_offset <= slot.fetch_offset <= self.log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return 0

    def diverges_from(self, slot: Slot) -> bool:
        return slot.last_fetched_epoch > self.leader_epoch

    def bytes_from(self, offset: int, reader: Reader) -> int:
        end = self.log_end_offset if reader.is_follower else self.high_watermark
        return max(0, self.ends[end] - self.ends[offset]) if offset <= end else 0

    def take(self, offset: int, reader: Reader, max_bytes: int, at_least_one: bool) -> int:
        """The bytes of the complete batches from there."""
        end = self.log_end_offset if reader.is_follower else self.high_watermark
        if offset >= end:
            return 0
        start = self.ends[offset]
        last = min(bisect_right(self.ends, start + max_bytes) - 1, end)
        if last == offset and at_least_one:
            last = offset + 1
        return self.ends[last] - start


class SyntheticPartitions:
    """Topics by name, with an id each."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[Uuid, list[Partition]]] = {}
        self.names: dict[Uuid, str] = {}
        self.examined = 0
        self.reads = 0
        self.progress: list[tuple[Slot, int, int]] = []  # fetch offset, time of the fetch before

    def create(self, name: str, topic_id: Uuid, count: int = 1) -> list[Partition]:
        partitions = [Partition() for _ in range(count)]
        self.topics[name] = (topic_id, partitions)
        self.names[topic_id] = name
        return partitions

    def delete(self, name: str) -> None:
        topic_id, _ = self.topics.pop(name)
        del self.names[topic_id]

    def topic_name(self, topic_id: Uuid) -> str | None:
        return self.names.get(topic_id)

    def availability(self, slot: Slot, reader: Reader) -> Availability:
        self.examined += 1
        partition = self._partition(slot)
        if partition is None:
            return Availability(PartitionStatus.NOT_SERVED)
        if self._error_of(partition, slot) or partition.diverges_from(slot):
            return Availability(PartitionStatus.FAILED)
        available_bytes = partition.bytes_from(slot.fetch_offset, reader)
        return Availability(PartitionStatus.SERVED, min(available_bytes, max(1, slot.max_bytes)))

    def fetched(self, slot: Slot, reader: Reader, now_ms: int) -> tuple[Availability, int]:
        self.progress.append((slot, slot.fetch_offset, slot.last_fetch_ms))
        return self.availability(slot, reader), 0

    def read(
        self, slot: Slot, reader: Reader, max_bytes: int, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        self.reads += 1
        partition = self._partition(slot)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else self._error_of(partition, slot)
        if partition is None or error:
            return PartitionData(partition_index=slot.index, error_code=error, high_watermark=-1), 0
        size = 0
        diverging = EpochEndOffset()
        if partition.diverges_from(slot):
            diverging = EpochEndOffset(partition.leader_epoch, partition.log_end_offset)
        else:
            size = partition.take(slot.fetch_offset, reader, max_bytes, at_least_one)
        return PartitionData(
            partition_index=slot.index,
            high_watermark=partition.high_watermark,
            log_start_offset=partition.log_start_offset,
            diverging_epoch=diverging,
            records=RECORDS[:size],
        ), size

    def _partition(self, slot: Slot) -> Partition | None:
        known = self.topics.get(slot.topic or "")
        return known[1][slot.index] if known is not None and 0 <= slot.index < len(known[1]) else None

    def _error_of(self, partition: Partition, slot: Slot) -> int:
        topic_id = self.topics[slot.topic or ""][0]
        if slot.topic_id not in (bytes(16), topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        return partition.error_of(slot)

    def next_offset(self, name: str, index: int, offset: int, size_bytes: int) -> int:
        """The offset that a reader reaches with that many bytes from there."""
        ends = self.topics[name][1][index].ends
        return ends.index(ends[offset] + size_bytes)

    def __repr__(self) -> str:
        return f"<SyntheticPartitions of {len(self.topics)} topics>"
