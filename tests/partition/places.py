"""What a partition reads, as plain values; and a log in memory that does what its effects say."""

from __future__ import annotations

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.log.epochs import EpochCache
from kraftd.partition.config import PartitionConfig
from kraftd.partition.effects import AppendBatches, AssignEpoch, LogStartMoved, StartLogAt, TruncateLog
from kraftd.partition.partition import Partition, Produced
from kraftd.partition.producers import CompletedTransaction
from kraftd.wire.batch import Batch
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import scan_batches
from testkit.random_batches import NOW_MS

LOCAL, OTHER, THIRD = 1, 2, 3


class Registered(Struct, frozen=True):
    """A partition in the metadata."""

    replicas: tuple[int, ...] = (LOCAL,)
    isr: tuple[int, ...] = (LOCAL,)
    leader: int = LOCAL
    leader_epoch: int = 7
    partition_epoch: int = 1
    leader_recovery_state: int = 0


class Brokers:
    """Registered brokers; a test fences them or lets them shut down."""

    def __init__(self) -> None:
        self.epochs = {LOCAL: 11, OTHER: 12, THIRD: 13}
        self.shutting_down: set[int] = set()

    def alive_epoch(self, broker_id: int) -> int | None:
        return self.epochs.get(broker_id)

    def is_shutting_down(self, broker_id: int) -> bool:
        return broker_id in self.shutting_down


class Place:
    """A partition with its log; `settle` does what effects say, and reports it."""

    def __init__(
        self, config: PartitionConfig | None = None, topic: str = "t", local_id: int = LOCAL
    ) -> None:
        self.brokers = Brokers()
        self.epochs = EpochCache()
        self.batches: list[Batch] = []
        self.aborted: list[CompletedTransaction] = []
        self.snapshots: dict[int, list[SnapshotEntry]] = {}
        self.now_ms = NOW_MS
        config = config or PartitionConfig()
        self.partition = Partition(topic, 0, local_id, config, self.brokers, self.epochs)

    def lead(self, **registration: object) -> list[Effect]:
        """Become leader, by default the only replica."""
        registered = Registered(**registration)  # type: ignore[arg-type]
        return self.settle(self.partition.follow_metadata(registered, self.now_ms))

    def produce(self, data: bytes | bytearray, acks: int = -1, version: int = 12, guard: int = 0) -> object:
        """Produce, and write what is to be appended."""
        found = self.partition.produce(bytearray(data), version, acks, self.now_ms, guard=guard)
        self.finish(found)
        return found

    def append_own(self, data: bytes | bytearray, transaction_version: int = 0) -> object:
        found = self.partition.append_own(
            bytearray(data), -1, self.now_ms, transaction_version=transaction_version
        )
        self.finish(found)
        return found

    def finish(self, found: object) -> list[Effect]:
        if isinstance(found, Produced) and found.append is not None:
            return self.settle([found.append])
        return []

    def settle(self, effects: list[Effect]) -> list[Effect]:
        """Do what effects say to the log; return all of them, with those that follow."""
        done: list[Effect] = []
        for effect in effects:
            done.append(effect)
            if isinstance(effect, AppendBatches):
                self.write(effect)
                done += self.partition.appended(effect.end_offset, self.now_ms)
            elif isinstance(effect, AssignEpoch):
                self.epochs.assign(effect.leader_epoch, effect.start_offset)
            elif isinstance(effect, LogStartMoved):
                self.epochs.truncate_from_start(effect.log_start_offset)
            elif isinstance(effect, TruncateLog):
                done += self.truncate(effect.end_offset)
            elif isinstance(effect, StartLogAt):
                self.batches.clear()
                self.epochs.clear()
        return done

    def write(self, effect: AppendBatches) -> None:
        batches, _, _ = scan_batches(b"".join(effect.views))
        assert [each.header for each in batches] == list(effect.headers)
        self.batches += batches
        for header in effect.headers:
            if header.leader_epoch >= 0:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        self.aborted += effect.aborted

    def truncate(self, end_offset: int) -> list[Effect]:
        """Cut the log before the batch that holds an offset, and load the producers anew: from the latest
        snapshot, and from the batches behind it. A snapshot of the result is kept. If all had expired,
        nothing is loaded. All this is as in Kafka.
        """
        self.batches = [each for each in self.batches if each.header.last_offset < end_offset]
        self.epochs.truncate_from_end(end_offset)
        producers = self.partition.producers
        was_empty = producers.is_empty
        self.snapshots = {at: each for at, each in self.snapshots.items() if at <= end_offset}
        latest = max(self.snapshots, default=0)
        producers.load(self.snapshots.get(latest, ()), latest, self.partition.config, self.now_ms)
        for batch in self.batches:
            if batch.header.base_offset >= latest and not was_empty:
                producers.replay(batch)
        if end_offset > latest:
            self.snapshots[end_offset] = producers.snapshot()
        self.aborted = [each for each in self.aborted if each.last_offset < end_offset]
        end = self.batches[-1].header.next_offset if self.batches else self.partition.log_start_offset
        return self.partition.truncated(self.partition.log_start_offset, end)

    def data(self) -> bytes:
        """All batches of the log."""
        return b"".join(bytes(each.view) for each in self.batches)
