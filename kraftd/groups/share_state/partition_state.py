"""What the coordinator knows of a share partition."""

from __future__ import annotations

from msgspec import Struct

from kraftd.groups.share_state.state_batches import NO_OFFSET, StateBatch

NO_EPOCH = -1
NO_COUNT = -1


class SharePartitionState(Struct, frozen=True, kw_only=True):
    """The newest snapshot with the updates since it.

    delivery_complete_count: of the records from the start offset on that need no delivery any more, or -1.
    highest_leader_epoch and highest_state_epoch: the highest seen, which fence requests of earlier ones; an
    initialization does not lower them. update_count: of the records since the last snapshot that was due.
    create_ms, write_ms: of the snapshot; they differ if it repeats what had not changed for a while.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_OFFSET
    delivery_complete_count: int = NO_COUNT
    batches: tuple[StateBatch, ...] = ()
    create_ms: int = 0
    write_ms: int = 0
    highest_leader_epoch: int = NO_EPOCH
    highest_state_epoch: int = NO_EPOCH
    update_count: int = 0
