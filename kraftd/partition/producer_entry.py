"""One producer of a partition: its epoch, its last batches, and what it may append next.

An entry is a value: a batch that is accepted makes another one.
"""

from __future__ import annotations

import enum
from typing import Protocol

from msgspec import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import BatchHeader
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    decrement_sequence,
    last_sequence,
)

BATCHES_REMEMBERED = 5
NO_OFFSET = -1
LEGACY_TRANSACTIONS = 0  # transaction.version before 2: markers have their transaction's epoch
TRANSACTIONS_V2 = 2  # KIP-890: a marker's epoch is one above its transaction's
TRANSACTIONAL, CONTROL = 0x10, 0x20  # attributes of a batch
_MAX_EPOCH = (1 << 15) - 1


class Origin(enum.Enum):
    """From where a batch is appended, which says how much of it is judged."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # its batches have no sequences
    REPLICATION = "replication"  # judged by the leader before


class ProducerError(Exception):
    """A batch that its producer's state refuses."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(error, text)
        self.error = error
        self.text = text

    def __str__(self) -> str:
        return f"{self.error.name}: {self.text}"


class SentBatch(NamedTuple):
    """A batch that a producer has appended."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(Struct, frozen=True, gc=False):
    """The state of a producer; its last batches, the oldest first."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp_ms: int = NO_TIMESTAMP
    transaction_start: int = NO_OFFSET  # the first offset of its current transaction
    batches: tuple[SentBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, header: BatchHeader) -> SentBatch | None:
        """The remembered batch that has exactly the sequences of another one."""
        if header.producer_epoch != self.producer_epoch:
            return None
        last = last_sequence(header)
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def __repr__(self) -> str:
        text = f"epoch {self.producer_epoch}, last sequence {self.last_sequence}"
        if self.transaction_start != NO_OFFSET:
            text += f", transaction from {self.transaction_start}"
        return f"<Producer {self.producer_id} {text}>"


class Sequenced(Protocol):
    """What a verification needs to know of a batch."""

    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...


class Verification(Struct):
    """A transaction whose coordinator is asked whether the partition belongs to it (KIP-890).

    A batch of it must show the guard. While an earlier batch waits, one of a higher sequence is refused.
    """

    timestamp_ms: int
    guard: int
    lowest_sequence: int
    producer_epoch: int
    supports_epoch_bump: bool


def with_batch(
    header: BatchHeader, entry: ProducerEntry, origin: Origin, verification: Verification | None
) -> tuple[ProducerEntry, int]:
    """The entry after a data batch, and the first offset of the transaction that it starts."""
    epoch, last = header.producer_epoch, last_sequence(header)
    if origin is not Origin.REPLICATION and epoch < entry.producer_epoch:
        raise stale_epoch(entry.producer_id, epoch, entry.producer_epoch)
    if origin is Origin.CLIENT:
        _check_sequence(header, entry, verification)
    start, started = entry.transaction_start, NO_OFFSET
    if header.attributes & TRANSACTIONAL:
        if start == NO_OFFSET:
            start = started = header.base_offset
    elif start != NO_OFFSET:
        raise ProducerError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {entry.producer_id} has a transaction, and this is none of it",
        )
    sent = SentBatch(last, header.last_offset, header.last_offset_delta, header.max_timestamp_ms)
    batches: tuple[SentBatch, ...] = (sent,)
    if epoch == entry.producer_epoch:
        batches = (*entry.batches[1 - BATCHES_REMEMBERED :], sent)
    updated = ProducerEntry(
        entry.producer_id, epoch, entry.coordinator_epoch, header.max_timestamp_ms, start, batches
    )
    return updated, started


def _check_sequence(header: BatchHeader, entry: ProducerEntry, verification: Verification | None) -> None:
    """Raise ProducerError unless a client's batch continues its producer's sequence."""
    sequence, epoch = header.base_sequence, header.producer_epoch
    if verification is not None:
        if verification.supports_epoch_bump and sequence != 0 and not entry.batches:
            raise _out_of_order(header, "0 is expected of a producer without state")
        if sequence > verification.lowest_sequence:
            raise _out_of_order(header, f"{verification.lowest_sequence} is the earliest that was seen")
    if epoch != entry.producer_epoch:
        if sequence != 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise _out_of_order(header, f"a new epoch after {entry.producer_epoch} begins with 0")
    elif entry.producer_epoch != NO_PRODUCER_EPOCH:
        last = entry.last_sequence
        if sequence != last + 1 and not (sequence == 0 and last == MAX_SEQUENCE):
            raise _out_of_order(header, f"{last} was the last")


def check_marker_epoch(header: BatchHeader, entry: ProducerEntry, transaction_version: int) -> None:
    """Raise ProducerError for the marker of a transaction that is over (KIP-890, KIP-1228)."""
    epoch, current = header.producer_epoch, entry.producer_epoch
    if transaction_version < TRANSACTIONS_V2:
        if epoch < current:
            raise stale_epoch(entry.producer_id, epoch, current)
    elif epoch <= current:
        is_retry = epoch == current and (entry.transaction_start == NO_OFFSET or epoch == _MAX_EPOCH)
        if not is_retry:
            raise stale_epoch(entry.producer_id, epoch, current)


def entry_of(each: SnapshotEntry) -> ProducerEntry:
    batches: tuple[SentBatch, ...] = ()
    if each.last_offset >= 0:
        batches = (SentBatch(each.last_sequence, each.last_offset, each.offset_delta, each.timestamp_ms),)
    start = each.current_txn_first_offset if each.current_txn_first_offset >= 0 else NO_OFFSET
    return ProducerEntry(
        each.producer_id, each.producer_epoch, each.coordinator_epoch, each.timestamp_ms, start, batches
    )


def is_expired(entry: ProducerEntry, limit_ms: int, now_ms: int) -> bool:
    """Return whether a producer is idle and outside of a transaction."""
    return entry.transaction_start == NO_OFFSET and now_ms - entry.last_timestamp_ms >= limit_ms


def stale_epoch(producer_id: int, epoch: int, current: int) -> ProducerError:
    return ProducerError(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {epoch} of producer {producer_id} is older than {current}"
    )


def _out_of_order(header: BatchHeader, expectation: str) -> ProducerError:
    return ProducerError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {header.base_sequence} of producer {header.producer_id} at offset {header.base_offset}: "
        f"{expectation}",
    )
