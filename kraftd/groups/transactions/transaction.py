"""A transactional id's state: a value that is replaced as a whole, when its record is committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TRANSITIONS,
    TransactionState,
)
from kraftd.wire.error_code import ErrorCode

TopicPartition = tuple[str, int]

NO_ID, NO_EPOCH, NO_TIME = -1, -1, -1
MAX_EPOCH = 32_767
EPOCH_BUMPS = 2  # the transaction.version from which each end raises the epoch (KIP-890)
NO_TIMEOUT_MS = 2**31 - 1  # of a transaction of two phases (KIP-939)
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


def bumps_epochs(version: int) -> bool:
    """Return whether each end of a transaction raises the producer's epoch at a transaction.version."""
    return version >= EPOCH_BUMPS


def is_exhausted(epoch: int) -> bool:
    """Return whether a producer id has no epoch left to give: the last one is kept for fencing."""
    return epoch >= MAX_EPOCH - 1


class Transaction(Struct, frozen=True, gc=False):
    """What a record says of a transactional id, and the last epoch, which no record has.

    next_producer_id: what follows when the epochs of the present one end with this transaction.
    client_version: the transaction.version that the producer has used.
    """

    producer_id: int
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: TransactionState = EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    client_version: int = 0

    def __repr__(self) -> str:
        who = f"producer {self.producer_id} epoch {self.producer_epoch}"
        return f"<Transaction {self.state!r} of {who}, {len(self.partitions)} partitions>"

    def _to(self, state: TransactionState, **changes: Any) -> Transaction:
        assert state in TRANSITIONS[self.state], f"{self.state!r} to {state!r}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)

    def with_next_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """For a producer that begins, or goes on from an epoch that it expects (KIP-360). Raises Refusal."""
        epoch, last = self.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch == NO_EPOCH or expected_epoch == self.producer_epoch:
                last = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:  # the answer was lost, and is given again
                epoch, last = self.producer_epoch, self.last_producer_epoch
            else:
                raise Refusal(ErrorCode.PRODUCER_FENCED)
        return self._initialized(self.producer_id, epoch, last, timeout_ms, now_ms)

    def with_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_epoch: bool
    ) -> Transaction:
        """With another producer id, for the epochs of the present one are used up."""
        last = self.producer_epoch if keeps_epoch else NO_EPOCH
        return self._initialized(producer_id, 0, last, timeout_ms, now_ms)

    def _initialized(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        return self._to(
            EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=NO_PARTITIONS,
            start_ms=NO_TIME,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        """With more partitions: the first ones begin a transaction."""
        return self._to(
            ONGOING,
            partitions=self.partitions | added,
            start_ms=self.start_ms if self.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def ending(
        self,
        is_commit: bool,
        client_version: int,
        now_ms: int,
        *,
        next_producer_id: int = NO_ID,
    ) -> Transaction:
        """Decided; with transactions v2 under the next epoch, which fences late writes of this one.

        A transaction that has not begun starts now.
        """
        epoch, last = self.producer_epoch, self.last_producer_epoch
        if bumps_epochs(client_version):
            epoch, last = min(self.producer_epoch + 1, MAX_EPOCH), self.producer_epoch
        return self._to(
            PREPARE_COMMIT if is_commit else PREPARE_ABORT,
            producer_epoch=epoch,
            last_producer_epoch=last,
            next_producer_id=next_producer_id,
            start_ms=self.start_ms if self.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """With all markers written."""
        producer_id, epoch = self.producer_id, self.producer_epoch
        if bumps_epochs(self.client_version) and self.next_producer_id != NO_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._to(
            COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_ID,
            partitions=NO_PARTITIONS,
            last_update_ms=now_ms,
        )


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """The topics and the indexes of partitions, both in order. To sort thousands of pairs takes longer."""
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return [(topic, sorted(indexes)) for topic, indexes in sorted(found.items())]


class TransactionalId:
    """A transactional id: what is committed of it, and what is on its way.

    pending: the state of a record that is not committed. While there is one, nothing else changes.
    completed: what follows once all markers are written. failed_markers: the partitions whose markers are to
    be sent again. has_failed_fence: the epoch was raised for a fence whose record was not written, and is not
    raised again.
    """

    __slots__ = ("completed", "current", "failed_markers", "has_failed_fence", "id", "pending")

    def __init__(self, id: str, current: Transaction) -> None:
        self.id = id
        self.current = current
        self.pending: TransactionState | None = None
        self.completed: Transaction | None = None
        self.failed_markers = NO_PARTITIONS
        self.has_failed_fence = False

    def __repr__(self) -> str:
        pending = "" if self.pending is None else f", {self.pending!r} pending"
        return f"<TransactionalId {self.id}: {self.current!r}{pending}>"

    def check_idle(self) -> None:
        """Raise Refusal while a change is on its way: what is decided has its completion on the way."""
        if self.pending is not None:
            raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS)

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """Raise Refusal unless it is this producer's, and not decided."""
        if self.current.producer_id != producer_id:
            raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if self.current.producer_epoch != producer_epoch:
            raise Refusal(ErrorCode.PRODUCER_FENCED)
        if self.current.state in (PREPARE_COMMIT, PREPARE_ABORT):
            raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
