"""AddPartitionsToTxn: what is asked for, of which producers, and the answers in each version."""

from __future__ import annotations

from typing import NamedTuple

from kraftd.acl import AclOperation, AclResourceType
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
from kraftd.wire.error_code import ErrorCode

BROKERS_VERSION = 4  # from which the request is a broker's, of several transactions (KIP-890)
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))

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


def transactions_of(request: AddPartitionsToTxnRequest, version: int) -> list[Asked]:
    """The transactions of a request; of a producer's there is one."""
    if version >= BROKERS_VERSION:
        return [_asked(each, EPOCH_BUMPS) for each in request.transactions]
    one = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )
    return [_asked(one, 0)]


def _asked(one: AddPartitionsToTxnTransaction, client_version: int) -> Asked:
    places = tuple(dict.fromkeys((topic.name, index) for topic in one.topics for index in topic.partitions))
    added = Added(
        one.transactional_id, one.producer_id, one.producer_epoch, frozenset(places), client_version
    )
    return Asked(added, places, one.verify_only)


def refused_places(topics: Topics, call: Call, asked: Asked) -> Results:
    """The errors of all partitions if one may not be written or is unknown; else nothing."""
    allowed: dict[str, bool] = {}
    errors: Results = {}
    for place in asked.places:
        topic, index = place
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
    return {place: errors.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED) for place in asked.places}


def response_of(version: int, results: list[tuple[Asked, Results]]) -> AddPartitionsToTxnResponse:
    """The answer of a version; PRODUCER_FENCED is new in version 2."""
    rows = [
        AddPartitionsToTxnResult(asked.added.transactional_id, _topics(version, asked, found))
        for asked, found in results
    ]
    if version >= BROKERS_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=rows)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows[0].topic_results)


def _topics(version: int, asked: Asked, found: Results) -> list[AddPartitionsToTxnTopicResult]:
    by_topic: dict[str, AddPartitionsToTxnTopicResult] = {}
    for place in asked.places:
        topic, index = place
        error = found[place]
        if version < 2 and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        rows = by_topic.setdefault(topic, AddPartitionsToTxnTopicResult(topic, [])).results_by_partition
        rows.append(AddPartitionsToTxnPartitionResult(index, error))
    return list(by_topic.values())
