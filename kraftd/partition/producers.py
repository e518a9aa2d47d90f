"""The producers of one partition: sequences, epochs and transactions, by the rules of Kafka's
ProducerStateManager.

    completed = producers.append(header, view, origin, config)  # judged and noted, of no duplicate
    producers.written(end_offset)                               # undone no more: it is in the log
    producers.roll_back(offset)                                 # an append failed: undo from there on

An entry of a producer is a value that is replaced as a whole, so that undoing is cheap. After a truncation
or at start the state is loaded from a snapshot's entries (`load`), and the batches behind it are replayed
(`replay`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator

from kraftd.named_tuple import NamedTuple
from kraftd.partition.config import PartitionConfig
from kraftd.partition.producer_entry import (
    BATCHES_REMEMBERED,
    CONTROL,
    LEGACY_TRANSACTIONS,
    NO_OFFSET,
    TRANSACTIONAL,
    Origin,
    ProducerEntry,
    ProducerError,
    SentBatch,
    Sequenced,
    Verification,
    check_marker_epoch,
    entry_of,
    is_expired,
    stale_epoch,
    with_batch,
)
from kraftd.wire.batch import Batch, BatchHeader, CorruptBatch
from kraftd.wire.end_marker import read_end_marker
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import MAX_SEQUENCE, NO_SEQUENCE, NO_TIMESTAMP

LATE_TRANSACTION_BUFFER_MS = 300_000
NO_GUARD = 0


_NOT_USUAL = TRANSACTIONAL | CONTROL


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended; `last_offset` is the marker's. The last stable offset is the one
    right after it, as the transaction index has it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


class _Undo(NamedTuple):
    """How the state was before a batch."""

    base_offset: int
    producer_id: int
    entry: ProducerEntry | None
    verification: Verification | None
    started: int
    completed: CompletedTransaction | None


class ProducerStates:
    """The producers of one partition. `end_offset` is the offset up to which batches are noted."""

    __slots__ = ("_completed", "_last_guard", "_ongoing", "_undo", "_verifications", "end_offset", "entries")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset
        self.entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, ascending
        # First offset and the marker's, of those above the high watermark.
        self._completed: list[tuple[int, int]] = []
        self._verifications: dict[int, Verification] = {}
        self._last_guard = NO_GUARD
        self._undo: list[_Undo] = []

    def __repr__(self) -> str:
        ongoing = len(self._ongoing)
        return (
            f"<ProducerStates {len(self.entries)} producers, {ongoing} transactions, up to {self.end_offset}>"
        )

    # --- a batch ---

    def follows(self, header: BatchHeader) -> bool:
        """Note a client's batch if it is of the usual kind: of no transaction, with the next sequences of a
        producer that has none either. Return False for any other, with nothing done.
        """
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        entry = self.entries.get(producer_id)
        if (
            entry is None
            or not (batches := entry.batches)
            or sequence != batches[-1].last_sequence + 1
            or epoch != entry.producer_epoch
            or entry.transaction_start != NO_OFFSET
            or header.attributes & _NOT_USUAL
            or producer_id in self._verifications
        ):
            return False
        delta, timestamp_ms = header.last_offset_delta, header.max_timestamp_ms
        base_offset, last = header.base_offset, sequence + delta
        if last > MAX_SEQUENCE:
            return False
        sent = SentBatch(last, base_offset + delta, delta, timestamp_ms)
        self._undo.append(_Undo(base_offset, producer_id, entry, None, NO_OFFSET, None))
        batches = (*batches[1 - BATCHES_REMEMBERED :], sent)
        self.entries[producer_id] = ProducerEntry(
            producer_id, epoch, entry.coordinator_epoch, timestamp_ms, NO_OFFSET, batches
        )
        self.end_offset = base_offset + delta + 1
        return True

    def find_duplicate(self, header: BatchHeader) -> SentBatch | None:
        """The batch that was appended before with the same sequences, if it is remembered."""
        entry = self.entries.get(header.producer_id)
        return None if entry is None else entry.duplicate_of(header)

    def append(
        self,
        header: BatchHeader,
        view: memoryview,
        origin: Origin,
        config: PartitionConfig,
        *,
        guard: int = NO_GUARD,
        transaction_version: int = LEGACY_TRANSACTIONS,
    ) -> CompletedTransaction | None:
        """Judge a batch that has a producer id and is no duplicate, and note it.

        Raises ProducerError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.entries.get(header.producer_id)
        if header.attributes & TRANSACTIONAL and origin is not Origin.REPLICATION:
            self._check_transaction(header, entry, config, guard)
        return self._note(header, view, entry, origin, transaction_version)

    def replay(self, batch: Batch) -> CompletedTransaction | None:
        """Note a batch of the log, which its leader has judged. Batches come in order of offset."""
        header = batch.header
        completed = None
        if header.producer_id > -1:
            entry = self.entries.get(header.producer_id)
            completed = self._note(header, batch.view, entry, Origin.REPLICATION, LEGACY_TRANSACTIONS)
            self._undo.clear()
        self.end_offset = header.next_offset
        return completed

    def _note(
        self,
        header: BatchHeader,
        view: memoryview,
        entry: ProducerEntry | None,
        origin: Origin,
        transaction_version: int,
    ) -> CompletedTransaction | None:
        producer_id, attributes = header.producer_id, header.attributes
        verification = self._verifications.get(producer_id)
        known = entry or ProducerEntry(producer_id)
        completed, started = None, NO_OFFSET
        if attributes & CONTROL:
            updated, completed = self._end(header, view, known, origin, transaction_version)
        else:
            updated, started = with_batch(header, known, origin, verification)
        self._undo.append(_Undo(header.base_offset, producer_id, entry, verification, started, completed))
        self.entries[producer_id] = updated
        if started != NO_OFFSET:
            self._ongoing[started] = producer_id
        if completed is not None:
            self._ongoing.pop(completed.first_offset, None)
            insort(self._completed, (completed.first_offset, completed.last_offset))
        if verification is not None and attributes & TRANSACTIONAL:
            # A marker of the previous transaction leaves what the next one has begun to verify.
            is_next = verification.supports_epoch_bump and attributes & CONTROL
            if not (is_next and header.producer_epoch == verification.producer_epoch):
                del self._verifications[producer_id]
        self.end_offset = header.next_offset
        return completed

    def _check_transaction(
        self, header: BatchHeader, entry: ProducerEntry | None, config: PartitionConfig, guard: int
    ) -> None:
        if self.has_ongoing_transaction(header.producer_id, header.producer_epoch):
            return
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            raise stale_epoch(header.producer_id, header.producer_epoch, entry.producer_epoch)
        if config.verifies_transactions and not header.attributes & CONTROL:
            verification = self._verifications.get(header.producer_id)
            if guard == NO_GUARD or verification is None or verification.guard != guard:
                raise ProducerError(
                    ErrorCode.INVALID_TXN_STATE, "the record is not part of an ongoing transaction"
                )

    def _end(
        self,
        header: BatchHeader,
        view: memoryview,
        entry: ProducerEntry,
        origin: Origin,
        transaction_version: int,
    ) -> tuple[ProducerEntry, CompletedTransaction | None]:
        """The entry after a control batch, and the transaction that it ends."""
        try:
            marker = read_end_marker(Batch(header, view, 0))
        except CorruptBatch as error:
            raise ProducerError(ErrorCode.INVALID_RECORD, error.reason) from None
        if marker is None:  # cleaned from the log with its whole transaction
            return entry, None
        is_commit, coordinator_epoch, timestamp_ms = marker
        if origin is not Origin.REPLICATION:
            check_marker_epoch(header, entry, transaction_version)
            if entry.coordinator_epoch > coordinator_epoch:
                raise ProducerError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"coordinator epoch {coordinator_epoch} of producer {entry.producer_id} is older than "
                    f"{entry.coordinator_epoch}",
                )
        completed = None
        if entry.transaction_start != NO_OFFSET:
            completed = CompletedTransaction(
                entry.producer_id, entry.transaction_start, header.base_offset, not is_commit,
                self._stable_after(entry.producer_id, header.base_offset),
            )  # fmt: skip
        batches = entry.batches if header.producer_epoch == entry.producer_epoch else ()
        updated = ProducerEntry(
            entry.producer_id, header.producer_epoch, coordinator_epoch, timestamp_ms, NO_OFFSET, batches
        )
        return updated, completed

    def _stable_after(self, producer_id: int, marker_offset: int) -> int:
        """The last stable offset once a producer's transaction is complete."""
        for first_offset, other in self._ongoing.items():
            if other != producer_id:
                return first_offset
        return marker_offset + 1

    def written(self, end_offset: int) -> None:
        """Forget how to undo batches that are in the log."""
        undo = self._undo
        if undo and undo[-1].base_offset < end_offset:
            undo.clear()
        elif undo:
            self._undo = [each for each in undo if each.base_offset >= end_offset]

    def roll_back(self, offset: int) -> None:
        """Undo every batch from an offset on, none of which was written."""
        while self._undo and self._undo[-1].base_offset >= offset:
            undo = self._undo.pop()
            if undo.completed is not None:
                self._completed.remove((undo.completed.first_offset, undo.completed.last_offset))
                self._ongoing[undo.completed.first_offset] = undo.producer_id
                self._ongoing = dict(sorted(self._ongoing.items()))
            if undo.started != NO_OFFSET:
                del self._ongoing[undo.started]
            if undo.entry is None:
                del self.entries[undo.producer_id]
            else:
                self.entries[undo.producer_id] = undo.entry
            if undo.verification is not None:
                self._verifications[undo.producer_id] = undo.verification
        self.end_offset = min(self.end_offset, offset)

    # --- transactions ---

    def has_transaction(self, producer_id: int) -> bool:
        """Return whether a producer has a transaction here, of any epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_start != NO_OFFSET

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a producer has a transaction here, of that epoch."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.transaction_start != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        )

    def start_verification(self, header: Sequenced, now_ms: int, *, supports_epoch_bump: bool) -> int:
        """The guard that a transactional batch must show once its coordinator has confirmed the partition.

        NO_GUARD if the transaction has begun here, so that no coordinator needs to be asked.
        `supports_epoch_bump`: the request is one of transaction version 2. Raises ProducerError:
        INVALID_PRODUCER_EPOCH.
        """
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.producer_epoch:
            raise stale_epoch(producer_id, epoch, entry.producer_epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return NO_GUARD
        known = self._verifications.get(producer_id)
        if known is None:
            self._last_guard += 1
            known = Verification(now_ms, self._last_guard, sequence, epoch, supports_epoch_bump)
            self._verifications[producer_id] = known
        if epoch == known.producer_epoch and sequence < known.lowest_sequence:
            known.lowest_sequence = sequence
        if epoch > known.producer_epoch:
            known.producer_epoch, known.lowest_sequence = epoch, sequence
        return known.guard

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is undecided, or whose end is not replicated."""
        first = next(iter(self._ongoing), None)
        if self._completed and (first is None or self._completed[0][0] < first):
            return self._completed[0][0]
        return first

    def replicated(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is below the high watermark, or the log start."""
        if self._completed:
            self._completed = [each for each in self._completed if each[1] >= high_watermark]

    def has_late_transaction(self, config: PartitionConfig, now_ms: int) -> bool:
        """Return whether the oldest transaction has lasted longer than any may, and some minutes more."""
        producer_id = next(iter(self._ongoing.values()), None)
        entry = None if producer_id is None else self.entries.get(producer_id)
        if entry is None or entry.last_timestamp_ms <= 0:
            return False
        limit_ms = config.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return now_ms - entry.last_timestamp_ms > limit_ms

    # --- the whole ---

    def expire(self, config: PartitionConfig, now_ms: int) -> int:
        """Forget producers without a transaction that have been idle for producer.id.expiration.ms, and
        verifications that old. Return how many producers were forgotten.
        """
        limit_ms = config.producer_id_expiration_ms
        idle = [each.producer_id for each in self.entries.values() if is_expired(each, limit_ms, now_ms)]
        for producer_id in idle:
            del self.entries[producer_id]
        old = [key for key, each in self._verifications.items() if now_ms - each.timestamp_ms >= limit_ms]
        for producer_id in old:
            del self._verifications[producer_id]
        return len(idle)

    def load(
        self, entries: Iterable[SnapshotEntry], offset: int, config: PartitionConfig, now_ms: int
    ) -> None:
        """Begin anew with a snapshot's entries as of an offset; without entries, with nothing."""
        self.entries.clear()
        self._completed.clear()
        self._undo.clear()
        ongoing: list[tuple[int, int]] = []
        for each in entries:
            entry = entry_of(each)
            if is_expired(entry, config.producer_id_expiration_ms, now_ms):
                continue
            self.entries[entry.producer_id] = entry
            if entry.transaction_start != NO_OFFSET:
                ongoing.append((entry.transaction_start, entry.producer_id))
        self._ongoing = dict(sorted(ongoing))
        self.end_offset = offset

    def snapshot(self, offset: int | None = None) -> list[SnapshotEntry]:
        """The entries of a snapshot at `end_offset`, or at an offset below which everything is written."""
        entries: dict[int, ProducerEntry | None] = dict(self.entries)
        for undo in reversed(self._undo):
            if offset is not None and undo.base_offset >= offset:
                entries[undo.producer_id] = undo.entry
        found = []
        for entry in entries.values():
            if entry is None:
                continue
            last = entry.batches[-1] if entry.batches else SentBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP)
            found.append(
                SnapshotEntry(
                    entry.producer_id,
                    entry.producer_epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.offset_delta,
                    entry.last_timestamp_ms,
                    entry.coordinator_epoch,
                    entry.transaction_start,
                )
            )
        return found

    def __iter__(self) -> Iterator[ProducerEntry]:
        """The producers, as DescribeProducers shows them."""
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is known of any producer."""
        return not (self.entries or self._verifications or self._completed)
