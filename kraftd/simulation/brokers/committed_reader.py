"""A reader of committed records, which skips what the answer lists as aborted, and at times reads anew."""

from __future__ import annotations

from typing import Any

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.simulation.brokers.transactional_producer import DECIDED
from kraftd.simulation.checkers.brokers.transactions import COMMIT
from kraftd.simulation.schedule import MS
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import decode_records

GAP_US = 100 * MS
_COMMITTED = 1  # isolation level


class CommittedReader:
    """See the module. It reads one partition."""

    def __init__(self, traffic: Any, index: int) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.index = index
        self.rng = self.world.rng("committed reader", index)
        self.position = 0

    def start(self) -> None:
        self._later()

    def has_all(self) -> bool:
        """Return whether it has read up to the high watermark of the leader."""
        found = self.traffic.leader_of(DECIDED, self.index)
        hosted = None if found is None else found[0].node.replicas.get(DECIDED, self.index)
        if hosted is None or hosted.partition is None:
            return False
        return bool(self.position >= hosted.partition.high_watermark)

    def _later(self) -> None:
        self.world.schedule.after(self.rng.between(1, 2 * GAP_US), self._read)

    def _read(self) -> None:
        traffic = self.traffic
        if not traffic.running:
            return
        found = traffic.leader_of(DECIDED, self.index)
        if found is None:
            self._later()
            return
        if not self.world.healed and self.rng.chance(0.05):
            self.position = 0
        side, key = found
        part = FetchPartition(
            self.index, -1, self.position, partition_max_bytes=1 << 20 if self.rng.chance(0.7) else 100
        )
        request = FetchRequest(
            max_wait_ms=self.rng.choice((0, 100, 400)),
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=_COMMITTED,
            topics=[FetchTopic("", key[0], [part])],
        )
        traffic.ask(side, [(request, self._fetched)])

    def _fetched(self, answer: Any) -> None:
        topics = [] if answer is None or answer.error_code else answer.responses
        for part in [one for topic in topics for one in topic.partitions]:
            if part.error_code == ErrorCode.NONE:
                self._take(part)
            elif part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.position = max(0, part.log_start_offset)
            elif part.error_code == ErrorCode.CORRUPT_MESSAGE:
                self.position += 1
        self._later()

    def _take(self, part: Any) -> None:
        """Keep the records that are committed, as Kafka's consumers do."""
        waiting = sorted(part.aborted_transactions or (), key=lambda one: one.first_offset)
        aborted = set[int]()
        for batch in iter_batches(part.records or b""):
            header = batch.header
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            records = decode_records(batch)
            if header.is_control:
                if bytes(records[0].key or b"") != COMMIT:
                    aborted.discard(header.producer_id)
            elif header.producer_id not in aborted:
                for one in records:
                    if one.offset >= self.position:
                        self.traffic.transactions.shown(bytes(one.value or b""))
            self.position = max(self.position, header.next_offset)

    def __repr__(self) -> str:
        return f"<CommittedReader of {DECIDED}-{self.index}, at {self.position}>"
