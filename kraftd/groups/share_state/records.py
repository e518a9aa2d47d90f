"""The records of ``__share_group_state``, and what they make of a share partition's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.partition_state import NO_EPOCH, SharePartitionState
from kraftd.groups.share_state.state_batches import NO_OFFSET, StateBatch, combined
from kraftd.messages import share_snapshot_value, share_update_value
from kraftd.messages.share_snapshot_key import ShareSnapshotKey
from kraftd.messages.share_snapshot_value import ShareSnapshotValue
from kraftd.messages.share_update_key import ShareUpdateKey
from kraftd.messages.share_update_value import ShareUpdateValue


def snapshot_record(key: SharePartitionKey, state: SharePartitionState) -> CoordinatorRecord:
    """All that is known of a share partition."""
    value = ShareSnapshotValue(
        state.snapshot_epoch,
        state.state_epoch,
        state.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
        state.create_ms,
        state.write_ms,
        [share_snapshot_value.StateBatch(*_fields(batch)) for batch in state.batches],
    )
    return CoordinatorRecord(ShareSnapshotKey(*key), value)


def update_record(key: SharePartitionKey, change: SharePartitionState) -> CoordinatorRecord:
    """What a write changes: its start offset and its batches."""
    value = ShareUpdateValue(
        change.snapshot_epoch,
        change.leader_epoch,
        change.start_offset,
        change.delivery_complete_count,
        [share_update_value.StateBatch(*_fields(batch)) for batch in change.batches],
    )
    return CoordinatorRecord(ShareUpdateKey(*key), value)


def tombstone_record(key: SharePartitionKey) -> CoordinatorRecord:
    """The end of a share partition; there is none of an update."""
    return CoordinatorRecord(ShareSnapshotKey(*key), None)


def _fields(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count


def state_batches(rows: Iterable[Any]) -> tuple[StateBatch, ...]:
    """The batches of a message."""
    return tuple(
        StateBatch(row.first_offset, row.last_offset, row.delivery_count, row.delivery_state) for row in rows
    )


def after_snapshot(
    former: SharePartitionState | None, value: ShareSnapshotValue, updates_per_snapshot: int
) -> SharePartitionState:
    """The state once a snapshot is in the log."""
    leader_epoch = state_epoch = NO_EPOCH
    update_count = 0
    if former is not None:
        leader_epoch, state_epoch = former.highest_leader_epoch, former.highest_state_epoch
        if former.update_count < updates_per_snapshot:
            update_count = former.update_count
    return SharePartitionState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=state_batches(value.state_batches),
        create_ms=value.create_timestamp,
        write_ms=value.write_timestamp,
        highest_leader_epoch=max(leader_epoch, value.leader_epoch),
        highest_state_epoch=max(state_epoch, value.state_epoch),
        update_count=update_count,
    )


def after_update(former: SharePartitionState | None, value: ShareUpdateValue) -> SharePartitionState:
    """The state once an update is in the log; its snapshot may have been deleted from there."""
    newer = state_batches(value.state_batches)
    if former is None:
        return SharePartitionState(
            snapshot_epoch=value.snapshot_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=newer,
            highest_leader_epoch=value.leader_epoch,
            update_count=1,
        )
    is_moved = value.start_offset != NO_OFFSET
    start_offset = value.start_offset if is_moved else former.start_offset
    is_newer = value.leader_epoch != NO_EPOCH
    return replace(
        former,
        start_offset=start_offset,
        leader_epoch=value.leader_epoch if is_newer else former.leader_epoch,
        delivery_complete_count=value.delivery_complete_count,
        batches=combined(former.batches, newer, start_offset),
        highest_leader_epoch=max(former.highest_leader_epoch, value.leader_epoch),
        update_count=former.update_count + 1,
    )
