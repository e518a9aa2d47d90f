"""AddPartitionsToTxn: what is asked for, of which producers, and the answers in each version."""

from __future__ import annotations

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.call import Call, Topics
from kraftd.groups.transactions.transaction import EPOCH_BUMPS, TopicPartition
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode

BROKERS_VERSION = 4  # from which the request is a broker's, of several transactions (KIP-890)
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))

# Microseconds: of a transaction, of a topic that is authorized, of a partition; partitions taken at once.
_TRANSACTION_US, _TOPIC_US, _PLACE_US, _AT_ONCE = 3, 60, 1, 1_000

Results = dict[TopicPartition, ErrorCode]


class Added(NamedTuple):
    """Partitions that a transaction is to have. client_version is 2 with transactions v2, else 0."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int


class Asked(NamedTuple):
    """One transaction of a request, with its partitions in order."""

    added: Added
    places: tuple[TopicPartition, ...]
    is_verify_only: bool


def transactions_of(request: AddPartitionsToTxnRequest, version: int) -> Slices[list[Asked]]:
    """The transactions of a request; of a producer's there is one."""
    if version >= BROKERS_VERSION:
        pace, found = Pace(), []
        for each in request.transactions:
            found.append((yield from _asked(each, EPOCH_BUMPS)))
            if pace.spent(_TRANSACTION_US):
                yield
        return found
    one = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )
    return [(yield from _asked(one, 0))]


def _asked(one: AddPartitionsToTxnTransaction, client_version: int) -> Slices[Asked]:
    pace, distinct = Pace(), dict[TopicPartition, None]()
    for topic in one.topics:
        for start in range(0, len(topic.partitions), _AT_ONCE):
            some = topic.partitions[start : start + _AT_ONCE]
            distinct.update(dict.fromkeys((topic.name, index) for index in some))
            if pace.spent(len(some)):
                yield
    places = tuple(distinct)
    added = Added(
        one.transactional_id, one.producer_id, one.producer_epoch, frozenset(places), client_version
    )
    return Asked(added, places, one.verify_only)


def refused_places(topics: Topics, call: Call, asked: Asked) -> Slices[Results]:
    """The errors of all partitions if one may not be written or is unknown; else nothing."""
    pace = Pace()
    allowed: dict[str, bool] = {}
    errors: Results = {}
    for place in asked.places:
        topic, index = place
        if pace.spent(_PLACE_US if topic in allowed else _TOPIC_US):
            yield
        if topic not in allowed:
            allowed[topic] = call.version >= BROKERS_VERSION or (
                topic not in INTERNAL_TOPICS and call.allows(AclOperation.WRITE, AclResourceType.TOPIC, topic)
            )
        if not allowed[topic]:
            errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not topics.has_partition(topic, index):
            errors[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not errors:
        return {}
    for place in asked.places:
        errors.setdefault(place, ErrorCode.OPERATION_NOT_ATTEMPTED)
        if pace.spent(_PLACE_US):
            yield
    return errors


def response_of(
    version: int, results: list[tuple[Asked, Results | ErrorCode]]
) -> Slices[AddPartitionsToTxnResponse]:
    """The answer of a version, from the error of each partition, or that of all partitions of a transaction.

    PRODUCER_FENCED is new in version 2.
    """
    pace, rows = Pace(), []
    for asked, found in results:
        topics = yield from _topics(version, asked, found)
        rows.append(AddPartitionsToTxnResult(asked.added.transactional_id, topics))
        if pace.spent(_TRANSACTION_US):
            yield
    if version >= BROKERS_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=rows)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows[0].topic_results)


def _topics(
    version: int, asked: Asked, found: Results | ErrorCode
) -> Slices[list[AddPartitionsToTxnTopicResult]]:
    pace = Pace()
    by_topic: dict[str, AddPartitionsToTxnTopicResult] = {}
    for place in asked.places:
        if pace.spent(_PLACE_US):
            yield
        topic, index = place
        error = found if isinstance(found, ErrorCode) else found[place]
        if version < 2 and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        rows = by_topic.setdefault(topic, AddPartitionsToTxnTopicResult(topic, [])).results_by_partition
        rows.append(AddPartitionsToTxnPartitionResult(index, error))
    return list(by_topic.values())
