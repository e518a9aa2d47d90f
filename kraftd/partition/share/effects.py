"""What the owner of a share partition does for it."""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.named_tuple import NamedTuple
from kraftd.partition.share.states import RecordState


class Change(NamedTuple):
    """The offsets from first to last have a new state."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class WriteState(Effect, frozen=True):
    """Tell the share coordinator. Answered by `SharePartition.written`."""

    write_id: int
    state_epoch: int
    start_offset: int
    complete_count: int
    changes: tuple[Change, ...]


class RecordsAvailable(Effect, frozen=True):
    """Fetches that wait may find records now."""
