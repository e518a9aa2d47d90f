"""DescribeTransactions and ListTransactions: transactional ids as operators see them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from re import Pattern
from typing import TYPE_CHECKING

from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.states import BY_NAME, DEAD
from kraftd.groups.transactions.transaction import TransactionalId
from kraftd.messages.describe_transactions_response import TopicData
from kraftd.messages.describe_transactions_response import TransactionState as Described
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.list_transactions_response import TransactionState as Listed
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.groups.transactions.shard import TransactionShard


class Open(NamedTuple):
    """An open transaction. start_ms: when it began. partitions: in how many its marker is missing."""

    transactional_id: str
    state: str
    producer_id: int
    start_ms: int
    timeout_ms: int
    partitions: int


def oldest_open(shards: Iterable[TransactionShard], most: int) -> list[Open]:
    """The transactions that have been open longest, decided ones among them, at most so many."""
    found = [
        Open(
            entry.id,
            entry.current.state.text,
            entry.current.producer_id,
            entry.current.start_ms,
            entry.current.timeout_ms,
            len(entry.current.partitions),
        )
        for shard in shards
        for ids in (shard.ongoing, shard.ending)
        for entry in (shard.ids[id] for id in islice(ids, most))
    ]
    return sorted(found, key=lambda one: one.start_ms)[:most]


def described(entry: TransactionalId) -> Described:
    """One transactional id, with the partitions whose markers are not written yet."""
    current = entry.current
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(current.partitions):
        by_topic.setdefault(topic, []).append(index)
    return Described(
        transactional_id=entry.id,
        transaction_state=current.state.text,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.start_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[TopicData(topic, tuple(indexes)) for topic, indexes in by_topic.items()],
    )


def unknown_states(request: ListTransactionsRequest) -> tuple[str, ...]:
    """The states of a request that are none."""
    return tuple(dict.fromkeys(name for name in request.state_filters if name not in BY_NAME))


def compiled(pattern: str | None) -> Pattern[str] | None:
    """A pattern of transactional ids, with RE2's rules: matching takes time linear in the id.

    Raises Refusal with INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        found: Pattern[str] = re2.compile(pattern, options)
    except re2.error:
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION) from None
    return found


def listed(
    entries: Iterable[TransactionalId],
    request: ListTransactionsRequest,
    pattern: Pattern[str] | None,
    now_ms: int,
) -> Iterator[Listed]:
    """The transactional ids that pass the filters of a request."""
    producer_ids = set(request.producer_id_filters)
    states = {BY_NAME[name] for name in request.state_filters if name in BY_NAME}
    for entry in entries:
        current = entry.current
        if (
            current.state is not DEAD
            and (not producer_ids or current.producer_id in producer_ids)
            and (not request.state_filters or current.state in states)
            and (request.duration_filter < 0 or now_ms - current.start_ms > request.duration_filter)
            and (pattern is None or pattern.fullmatch(entry.id))
        ):
            yield Listed(entry.id, current.producer_id, current.state.text)
