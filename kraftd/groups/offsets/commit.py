"""OffsetCommit, TxnOffsetCommit and OffsetDelete in the shard of their group.

Topics of a request are known here: `kraftd.groups.topics` has answered for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.refusal import Refusal
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.rebalance import heard
from kraftd.groups.classic.states import PREPARING_REBALANCE, STABLE
from kraftd.groups.group import CommitCheck, Group
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, offset_record
from kraftd.groups.state import ShardState
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.offset_delete_request import OffsetDeleteRequest
from kraftd.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kraftd.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kraftd.types import ZERO_UUID, as_long
from kraftd.wire.error_code import ErrorCode

NOT_FOUND_VERSION = 9  # of OffsetCommit: a missing group is named as such
NO_TIME = -1


def commit(state: ShardState, request: OffsetCommitRequest, version: int) -> Outcome:
    """Commit offsets of a member, or of a consumer without group membership. Raises Refusal.

    A commit of a classic group's member is as good as a heartbeat.
    """
    group = state.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation >= 0:
            if version < NOT_FOUND_VERSION:
                raise Refusal(ErrorCode.ILLEGAL_GENERATION)
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        group = state.new_classic_group(request.group_id)
    check = group.check_commit(request.member_id, request.group_instance_id, generation, False, version)
    hear(state, group, request.member_id)
    expires_ms = NO_TIME
    if request.retention_time_ms != NO_TIME:
        expires_ms = as_long(state.now_ms + request.retention_time_ms)

    def answer(topic: Any, rows: list[Any]) -> OffsetCommitResponseTopic:
        return OffsetCommitResponseTopic(topic.name, topic.topic_id, rows)

    records, topics = _noted(state, request, answer, OffsetCommitResponsePartition, expires_ms, check)
    return Outcome(records, OffsetCommitResponse(topics=topics))


def hear(state: ShardState, group: Group, member_id: str) -> None:
    """Begin the session of a classic group's member anew, which has committed."""
    if isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING_REBALANCE):
        heard(state, group, group.members[member_id])


def commit_in_transaction(state: ShardState, request: TxnOffsetCommitRequest, version: int) -> Outcome:
    """Note offsets that a transaction will commit, or not (KIP-447). Raises Refusal.

    The records name the producer; the marker of the transaction's end decides about them.
    """
    group: Group | None = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION)
        group = state.new_classic_group(request.group_id)

    def answer(topic: Any, rows: list[Any]) -> TxnOffsetCommitResponseTopic:
        return TxnOffsetCommitResponseTopic(topic.name, rows)

    try:
        check = group.check_commit(
            request.member_id, request.group_instance_id, request.generation_id, True, version
        )
        records, topics = _noted(state, request, answer, TxnOffsetCommitResponsePartition, NO_TIME, check)
    except Refusal as refusal:
        if refusal.code is ErrorCode.STALE_MEMBER_EPOCH:  # which this API does not have
            raise Refusal(ErrorCode.ILLEGAL_GENERATION) from None
        raise
    return Outcome(records, TxnOffsetCommitResponse(topics=topics))


def _noted(
    state: ShardState,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    new_topic: Callable[[Any, list[Any]], Any],
    new_row: Callable[..., Any],
    expires_ms: int,
    check: CommitCheck | None = None,
) -> tuple[list[CoordinatorRecord], list[Any]]:
    """The records of a request's offsets, and the topics of its answer."""
    metadata_max = state.config.offset_metadata_max_bytes
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in request.topics:
        rows: list[Any] = []
        topics.append(new_topic(topic, rows))
        topic_id = getattr(topic, "topic_id", b"")
        for row in topic.partitions:
            metadata = row.committed_metadata or ""
            if is_too_long(metadata, metadata_max):
                rows.append(new_row(row.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            if check is not None:
                check(topic_id or state.metadata.topic_id(topic.name) or ZERO_UUID, row.partition_index)
            rows.append(new_row(row.partition_index))
            value = OffsetCommitValue(
                row.committed_offset,
                row.committed_leader_epoch,
                metadata,
                state.now_ms,
                expires_ms,
                topic_id or ZERO_UUID,
            )
            records.append(offset_record(request.group_id, topic.name, row.partition_index, value))
    state.counts.offset_commits += len(records)
    return records, topics


def is_too_long(metadata: str, most: int) -> bool:
    """Return whether metadata exceeds ``offset.metadata.max.bytes``, which Kafka counts in UTF-16 units."""
    length = len(metadata)
    if length > most:
        return True
    if 2 * length <= most or metadata.isascii():
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > most


def delete_offsets(state: ShardState, request: OffsetDeleteRequest) -> Outcome:
    """Delete offsets of topics that no member is subscribed to (KIP-496). Raises Refusal."""
    group = state.group(request.group_id)
    group.check_offset_delete()
    offsets = state.offsets.of_group(request.group_id)
    records: list[CoordinatorRecord] = []
    topics: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        is_subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
        rows = [OffsetDeleteResponsePartition(row.partition_index, error) for row in topic.partitions]
        topics.append(OffsetDeleteResponseTopic(topic.name, rows))
        if is_subscribed:
            continue
        for row in topic.partitions:
            place = (topic.name, row.partition_index)
            if place in offsets or state.offsets.is_open(request.group_id, place):
                records.append(offset_record(request.group_id, *place, None))
    state.counts.offset_deletions += len(records)
    return Outcome(records, OffsetDeleteResponse(topics=topics))
