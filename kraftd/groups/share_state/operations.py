"""What is asked of one share partition: its state is initialized, written, read or deleted (KIP-932).

Each function returns the records and the answer. Errors stand in the answer, one by one.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kraftd.groups.call import Topics
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.partition_state import NO_COUNT, NO_EPOCH, SharePartitionState
from kraftd.groups.share_state.records import (
    snapshot_record,
    state_batches,
    tombstone_record,
    update_record,
)
from kraftd.groups.share_state.shard import ShareStateShard
from kraftd.groups.share_state.state_batches import NO_OFFSET, combined
from kraftd.messages import (
    delete_share_group_state_response,
    initialize_share_group_state_response,
    read_share_group_state_response,
    read_share_group_state_summary_response,
    write_share_group_state_response,
)
from kraftd.messages.initialize_share_group_state_request import PartitionData as Initialization
from kraftd.messages.read_share_group_state_request import PartitionData as Reading
from kraftd.messages.write_share_group_state_request import PartitionData as Writing
from kraftd.wire.error_code import ErrorCode

Initialized = initialize_share_group_state_response.PartitionResult
Written = write_share_group_state_response.PartitionResult
Read = read_share_group_state_response.PartitionResult
Summary = read_share_group_state_summary_response.PartitionResult
Deleted = delete_share_group_state_response.PartitionResult

Problem = tuple[ErrorCode, str]  # with its text for the answer

NEGATIVE = ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number."
UNINITIALIZED = "%s operation on uninitialized share partition not allowed."


def initialize(
    shard: ShareStateShard, topics: Topics, key: SharePartitionKey, row: Initialization
) -> Outcome:
    """Begin anew from an offset, whatever is known."""
    former = shard.states.get(key)
    problem = negative(key) or fenced_state(former, row.state_epoch) or unknown_partition(topics, key)
    if problem:
        return Outcome(response=Initialized(key.partition, *problem))
    state = SharePartitionState(
        snapshot_epoch=0 if former is None else former.snapshot_epoch + 1,
        state_epoch=row.state_epoch,
        leader_epoch=0,
        start_offset=row.start_offset,
        # Without an offset there is nothing yet to be behind of.
        delivery_complete_count=NO_COUNT if row.start_offset == NO_OFFSET else 0,
        create_ms=shard.state.now_ms,
        write_ms=shard.state.now_ms,
    )
    return Outcome([snapshot_record(key, state)], Initialized(key.partition))


def write(shard: ShareStateShard, topics: Topics, key: SharePartitionKey, row: Writing) -> Outcome:
    """Note what became of records."""
    former = shard.states.get(key)
    problem = (
        negative(key)
        or uninitialized(former, "Write")
        or fenced_leader(former, row.leader_epoch)
        or fenced_state(former, row.state_epoch)
        or unknown_partition(topics, key)
    )
    if problem:
        return Outcome(response=Written(key.partition, *problem))
    assert former is not None
    record = written_record(shard, key, former, row, former.leader_epoch)
    return Outcome([record], Written(key.partition))


def read(shard: ShareStateShard, topics: Topics, key: SharePartitionKey, row: Reading) -> Outcome:
    """Tell a new leader of the partition what is known, and note its epoch."""
    state = shard.states.get(key)
    problem = (
        negative(key)
        or uninitialized(state, "Read")
        or fenced_leader(state, row.leader_epoch)
        or unknown_partition(topics, key)
    )
    if problem:
        return Outcome(response=Read(key.partition, *problem))
    assert state is not None
    rows = [
        read_share_group_state_response.StateBatch(
            batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
        )
        for batch in state.batches
    ]
    answer = Read(key.partition, 0, None, state.state_epoch, state.start_offset, rows)
    if row.leader_epoch in (NO_EPOCH, state.highest_leader_epoch):
        return Outcome(response=answer)
    change = Writing(
        key.partition,
        state.state_epoch,
        row.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
    )
    return Outcome([written_record(shard, key, state, change, row.leader_epoch)], answer)


def summarize(shard: ShareStateShard, topics: Topics, key: SharePartitionKey, row: Reading) -> Outcome:
    """Tell how far a share partition has come; one that is not known has come nowhere."""
    problem = negative(key) or unknown_partition(topics, key)
    if problem:
        return Outcome(response=Summary(key.partition, *problem))
    state = shard.states.get(key) or SharePartitionState()
    return Outcome(
        response=Summary(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
    )


def delete(shard: ShareStateShard, topics: Topics, key: SharePartitionKey, row: Any) -> Outcome:
    """Forget a share partition, if it is known."""
    problem = negative(key) or unknown_partition(topics, key)
    if problem:
        return Outcome(response=Deleted(key.partition, *problem))
    records = [tombstone_record(key)] if key in shard.states else []
    return Outcome(records, Deleted(key.partition))


def written_record(
    shard: ShareStateShard,
    key: SharePartitionKey,
    former: SharePartitionState,
    row: Writing,
    leader_epoch: int,
) -> CoordinatorRecord:
    """An update, or a snapshot after so many updates."""
    now_ms, newer = shard.state.now_ms, state_batches(row.state_batches)
    if former.update_count < shard.config.share_coordinator_snapshot_update_records_per_snapshot:
        change = SharePartitionState(
            snapshot_epoch=former.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=row.start_offset,
            delivery_complete_count=row.delivery_complete_count,
            batches=combined((), newer, row.start_offset),
        )
        return update_record(key, change)
    start_offset = former.start_offset if row.start_offset == NO_OFFSET else row.start_offset
    state = replace(
        former,
        snapshot_epoch=former.snapshot_epoch + 1,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=row.delivery_complete_count,
        batches=combined(former.batches, newer, start_offset),
        create_ms=now_ms,
        write_ms=now_ms,
    )
    return snapshot_record(key, state)


def negative(key: SharePartitionKey) -> Problem | None:
    return NEGATIVE if key.partition < 0 else None


def uninitialized(state: SharePartitionState | None, what: str) -> Problem | None:
    return (ErrorCode.INVALID_REQUEST, UNINITIALIZED % what) if state is None else None


def fenced_leader(state: SharePartitionState | None, leader_epoch: int) -> Problem | None:
    """What is wrong with a request of a former leader of the partition."""
    is_fenced = state is not None and leader_epoch != NO_EPOCH and leader_epoch < state.highest_leader_epoch
    return problem_of(ErrorCode.FENCED_LEADER_EPOCH) if is_fenced else None


def fenced_state(state: SharePartitionState | None, state_epoch: int) -> Problem | None:
    """What is wrong with a request of before the last initialization."""
    is_fenced = state is not None and state_epoch != NO_EPOCH and state_epoch < state.highest_state_epoch
    return problem_of(ErrorCode.FENCED_STATE_EPOCH) if is_fenced else None


def unknown_partition(topics: Topics, key: SharePartitionKey) -> Problem | None:
    name = topics.topic_name(key.topic_id)
    if name is None or not topics.has_partition(name, key.partition):
        return problem_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def problem_of(error: ErrorCode) -> Problem:
    """An error with its usual text."""
    return error, error.message
