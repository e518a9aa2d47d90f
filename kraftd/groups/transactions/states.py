"""The states of a transactional id, and which follows which (KIP-98, KIP-890)."""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """A state with its number in a record, and its name in answers."""

    number: int
    text: str

    EMPTY = 0, "Empty"
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text

    __hash__ = object.__hash__  # by identity: Enum's own takes a call at each look in a table

    def __repr__(self) -> str:
        return self.text


EMPTY, ONGOING, DEAD = TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.DEAD
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

BY_NUMBER = {state.number: state for state in TransactionState}
BY_NAME = {state.text: state for state in TransactionState}

# Rules. 1. A transaction is decided once: what is prepared ends so, through restarts and failovers.
# 2. It is complete when every partition has its marker, never before. 3. Only what is complete, or has never
# begun, begins anew, gets a new epoch, or expires. 4. A fence aborts the producer's transaction.
# 5. With transactions v2, a producer that does not know may abort what has not begun (KIP-890).
# PREPARE_EPOCH_FENCE has a number in Kafka's records, and is never written.
TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    EMPTY: frozenset((EMPTY, ONGOING, PREPARE_ABORT, DEAD)),
    ONGOING: frozenset((ONGOING, PREPARE_COMMIT, PREPARE_ABORT)),
    PREPARE_COMMIT: frozenset((COMPLETE_COMMIT,)),
    PREPARE_ABORT: frozenset((COMPLETE_ABORT,)),
    COMPLETE_COMMIT: frozenset((EMPTY, ONGOING, PREPARE_ABORT, DEAD)),
    COMPLETE_ABORT: frozenset((EMPTY, ONGOING, PREPARE_ABORT, DEAD)),
    DEAD: frozenset(),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}

PREPARED = frozenset((PREPARE_COMMIT, PREPARE_ABORT))
EXPIRABLE = frozenset((EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT))
