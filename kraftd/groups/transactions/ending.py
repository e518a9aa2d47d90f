"""EndTxn: whether a transaction may be committed or aborted, by whom, and what a repeated request means."""

from __future__ import annotations

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.initializing import NeedsProducerId
from kraftd.groups.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
)
from kraftd.groups.transactions.transaction import (
    MAX_EPOCH,
    NO_EPOCH,
    NO_ID,
    Transaction,
    TransactionalId,
    bumps_epochs,
    is_exhausted,
)
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode


class End(NamedTuple):
    """The end that is asked for. client_version is 2 for a producer of transactions v2, else 0."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


def decided(entry: TransactionalId, end: End, new_producer_id: int | None, now_ms: int) -> Transaction | None:
    """The transaction as a producer's request ends it; None if it has ended so before.

    Raises Refusal or NeedsProducerId.
    """
    if bumps_epochs(end.client_version):
        return _decided_with_bump(entry, end, new_producer_id, now_ms)
    current = entry.current
    if current.producer_id != end.producer_id:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != end.producer_epoch:
        raise Refusal(ErrorCode.PRODUCER_FENCED)
    entry.check_idle()
    if current.state is ONGOING:
        return current.ending(end.is_commit, end.client_version, now_ms)
    if not _has_ended_so(current, end.is_commit):
        raise Refusal(ErrorCode.INVALID_TXN_STATE)
    return None


def _decided_with_bump(
    entry: TransactionalId, end: End, new_producer_id: int | None, now_ms: int
) -> Transaction | None:
    """With transactions v2 the epoch says whether a request is repeated: each end has raised it."""
    current, epoch = entry.current, end.producer_epoch
    entry.check_idle()
    is_retry_of_last = (
        current.previous_producer_id == end.producer_id and epoch == MAX_EPOCH - 1
    ) and current.producer_epoch == 0
    is_retry = current.producer_epoch == epoch + 1
    if current.producer_id != end.producer_id and not is_retry_of_last:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.state in (COMPLETE_COMMIT, COMPLETE_ABORT):
        is_valid = is_retry or is_retry_of_last or epoch == current.producer_epoch
    else:
        is_valid = epoch == current.producer_epoch
    if not is_valid:
        raise Refusal(ErrorCode.PRODUCER_FENCED)
    is_unused = current.state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT) and not (
        is_retry or is_retry_of_last
    )
    if current.state is ONGOING or (is_unused and not end.is_commit):
        return _raised(current, end.is_commit, end.client_version, new_producer_id, now_ms)
    if is_unused or not _has_ended_so(current, end.is_commit):
        raise Refusal(ErrorCode.INVALID_TXN_STATE)
    return None


def _has_ended_so(current: Transaction, is_commit: bool) -> bool:
    return current.state is (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT)


def fenced(
    entry: TransactionalId, transaction_version: int, new_producer_id: int | None, now_ms: int
) -> Transaction:
    """An ongoing transaction as the coordinator aborts it, so that its producer cannot go on.

    Raises NeedsProducerId.
    """
    current = entry.current
    if bumps_epochs(transaction_version):
        return _raised(current, False, transaction_version, new_producer_id, now_ms)
    if not entry.has_failed_fence:
        epoch = min(current.producer_epoch + 1, MAX_EPOCH)
        current = entry.current = replace(current, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
    return current.ending(False, 0, now_ms)


def _raised(
    current: Transaction, is_commit: bool, version: int, new_producer_id: int | None, now_ms: int
) -> Transaction:
    next_id = NO_ID
    if is_exhausted(current.producer_epoch):
        if new_producer_id is None:
            raise NeedsProducerId
        next_id = new_producer_id
    if is_commit and current.producer_epoch == MAX_EPOCH:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # no producer has this epoch: it fences the last one
    return current.ending(is_commit, version, now_ms, next_producer_id=next_id)
