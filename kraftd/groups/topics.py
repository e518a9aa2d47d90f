"""Which topics of a request exist and may be read: what is answered before the coordinator sees the others.

As on Apache Kafka's brokers, the broker that has the request answers for topics that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, TypeVar

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.call import Call, Topics
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftd.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kraftd.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kraftd.messages.offset_fetch_request import OffsetFetchRequestGroup
from kraftd.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kraftd.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

TOPIC_ID_VERSION = 10  # of OffsetCommit and OffsetFetch (KIP-848)

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R", TxnOffsetCommitResponse, OffsetDeleteResponse)
Names = dict[str, None]


TOPIC_US = 10  # of work: a topic's authorization
TOPICS_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def may(call: Call, operation: AclOperation, topic: str) -> bool:
    """Return whether the caller may do this to a topic."""
    return call.allows(operation, AclResourceType.TOPIC, topic)


def may_describe_all(call: Call, topics: Iterable[str], pace: Pace) -> Slices[bool]:
    """Return whether the caller may describe all of a group's topics, slice by slice."""
    for name in set(topics):
        if not may(call, AclOperation.DESCRIBE, name):
            return False
        if pace.spent(TOPIC_US):
            yield
    return True


def known_commit(
    topics: Topics, call: Call, request: OffsetCommitRequest
) -> tuple[OffsetCommitRequest, list[OffsetCommitResponseTopic]]:
    """The part of an OffsetCommit for the coordinator, and the answers for the other topics."""
    by_id = call.version >= TOPIC_ID_VERSION
    kept: list[OffsetCommitRequestTopic] = []
    answered: dict[object, OffsetCommitResponseTopic] = {}

    def answer(
        name: str, topic_id: bytes, asked: list[OffsetCommitRequestPartition], error: ErrorCode
    ) -> None:
        rows = [OffsetCommitResponsePartition(row.partition_index, error) for row in asked]
        found = answered.setdefault(
            topic_id if by_id else name, OffsetCommitResponseTopic(name, topic_id, [])
        )
        found.partitions += rows

    for topic in request.topics:
        name = (topics.topic_name(topic.topic_id) or "") if by_id else topic.name
        topic_id = topic.topic_id if by_id else topics.topic_id(name) or ZERO_UUID
        if by_id and not name:
            answer(name, topic_id, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not may(call, AclOperation.READ, name):
            answer(name, topic.topic_id, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif topic_id == ZERO_UUID:
            answer(name, topic_id, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            rows: list[OffsetCommitRequestPartition] = []
            missing: list[OffsetCommitRequestPartition] = []
            for row in topic.partitions:
                (rows if topics.has_partition(name, row.partition_index) else missing).append(row)
            if missing:
                answer(name, topic_id, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if rows:
                kept.append(OffsetCommitRequestTopic(name, topic_id, rows))
    known = OffsetCommitRequest(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        kept,
    )
    return known, list(answered.values())


def merged(first: list[T], second: list[T], key: Callable[[T], object]) -> list[T]:
    """Topics of two answers, a topic of both once. Neither list changes: an answer may be made twice."""
    if not first and len(second) == 1:
        return second
    by_key: dict[object, Any] = {key(topic): copy(topic) for topic in first}
    rest: list[Any] = second
    for topic in rest:
        found = by_key.get(key(topic))
        if found is None:
            by_key[key(topic)] = topic
        else:
            found.partitions = [*found.partitions, *topic.partitions]
    return list(by_key.values())


def merge_commit(
    answered: list[OffsetCommitResponseTopic], response: OffsetCommitResponse, version: int
) -> OffsetCommitResponse:
    """The coordinator's answer with those for topics that it has not seen."""
    by_id = version >= TOPIC_ID_VERSION
    response.topics = merged(answered, response.topics, lambda topic: topic.topic_id if by_id else topic.name)
    return response


def known_transactional_commit(
    topics: Topics, call: Call, request: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitRequest, list[TxnOffsetCommitResponseTopic]]:
    """As `known_commit`, for TxnOffsetCommit."""
    known = copy(request)
    known.topics, answered = _known_by_name(
        topics,
        call,
        request.topics,
        TxnOffsetCommitRequestTopic,
        TxnOffsetCommitResponseTopic,
        TxnOffsetCommitResponsePartition,
    )
    return known, answered


def known_delete(
    topics: Topics, call: Call, request: OffsetDeleteRequest
) -> tuple[OffsetDeleteRequest, list[OffsetDeleteResponseTopic]]:
    """As `known_commit`, for OffsetDelete."""
    kept, answered = _known_by_name(
        topics,
        call,
        request.topics,
        OffsetDeleteRequestTopic,
        OffsetDeleteResponseTopic,
        OffsetDeleteResponsePartition,
    )
    return OffsetDeleteRequest(request.group_id, kept), answered


def _known_by_name(
    topics: Topics,
    call: Call,
    requested: list[Any],
    keep: Callable[[str, list[Any]], T],
    answer: Callable[[str, list[Any]], U],
    refuse: Callable[[int, ErrorCode], Any],
) -> tuple[list[T], list[U]]:
    """The requested topics and partitions that are known and may be read, and the answers for the others."""
    kept: list[T] = []
    answered: dict[str, Any] = {}
    for topic in requested:
        name = topic.name
        rows, error = [], ErrorCode.TOPIC_AUTHORIZATION_FAILED
        is_refused = True  # as a whole: it is answered although no partition is asked for
        if may(call, AclOperation.READ, name):
            is_refused = topics.topic_id(name) is None
            rows = [row for row in topic.partitions if topics.has_partition(name, row.partition_index)]
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        taken = {row.partition_index for row in rows}
        refused = [
            refuse(row.partition_index, error) for row in topic.partitions if row.partition_index not in taken
        ]
        if refused or is_refused:
            answered.setdefault(name, answer(name, [])).partitions += refused
        if rows:
            kept.append(keep(name, rows))
    return kept, list(answered.values())


def merge_by_name(answered: list[Any], response: R) -> R:
    """The coordinator's answer with those for topics that it has not seen."""
    response.topics = merged(answered, response.topics, lambda topic: topic.name)
    return response


def known_fetch(
    topics: Topics, call: Call, request: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    """The part of a group's OffsetFetch that names topics the caller may see, and answers for the others."""
    if request.topics is None:
        return request, []
    by_id = call.version >= TOPIC_ID_VERSION
    kept, answered = [], []
    for topic in request.topics:
        if by_id:
            topic.name = topics.topic_name(topic.topic_id) or ""
        if by_id and not topic.name:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not may(call, AclOperation.DESCRIBE, topic.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            kept.append(topic)
            continue
        rows = [
            OffsetFetchResponsePartitions(index, -1, error_code=error) for index in topic.partition_indexes
        ]
        answered.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, rows))
    known = OffsetFetchRequestGroup(request.group_id, request.member_id, request.member_epoch, kept)
    return known, answered


def merge_fetch(
    topics: Topics,
    call: Call,
    is_all: bool,
    answered: list[OffsetFetchResponseTopics],
    response: OffsetFetchResponseGroup,
) -> OffsetFetchResponseGroup:
    """The coordinator's answer with those for other topics; of all topics, those that the caller may see."""
    if response.error_code:
        return response
    if not is_all:
        response.topics += answered
        return response
    seen = [topic for topic in response.topics if may(call, AclOperation.DESCRIBE, topic.name)]
    if call.version >= TOPIC_ID_VERSION:
        for topic in seen:
            topic.topic_id = topics.topic_id(topic.name) or ZERO_UUID
        seen = [topic for topic in seen if topic.topic_id != ZERO_UUID]
    response.topics = seen
    return response
