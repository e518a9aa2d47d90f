"""InitProducerId of a transactional id: which producer id and epoch it gets (KIP-98, KIP-360)."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.states import ONGOING
from kraftd.groups.transactions.transaction import (
    NO_EPOCH,
    Transaction,
    TransactionalId,
    is_exhausted,
)
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode


class NeedsProducerId(Exception):
    """The operation is to be repeated with a new producer id."""


class Expected(NamedTuple):
    """The producer id and epoch from which a producer goes on."""

    producer_id: int
    producer_epoch: int


def initialized(
    entry: TransactionalId,
    timeout_ms: int,
    expected: Expected | None,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction | None:
    """The state for a producer that begins; None if its former transaction is to be aborted first.

    Raises Refusal or NeedsProducerId.
    """
    current = entry.current
    entry.check_idle()
    if expected is not None and not _may_go_on(current, expected):
        raise Refusal(ErrorCode.PRODUCER_FENCED)
    if current.state is ONGOING:
        return None
    epoch = None if expected is None else expected.producer_epoch
    if is_exhausted(current.producer_epoch) and epoch in (None, current.producer_epoch):
        if new_producer_id is None:
            raise NeedsProducerId
        return current.with_producer_id(new_producer_id, timeout_ms, now_ms, keeps_epoch=epoch is not None)
    if is_exhausted(current.producer_epoch):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    return current.with_next_epoch(timeout_ms, epoch, now_ms)


def _may_go_on(current: Transaction, expected: Expected) -> bool:
    """Return whether a producer with this id is the present one, or has missed the answer with its new id.

    Its epoch is judged later.
    """
    if current.producer_epoch == NO_EPOCH or expected.producer_id == current.producer_id:
        return True
    is_former = expected.producer_id == current.previous_producer_id
    return is_former and is_exhausted(expected.producer_epoch)
