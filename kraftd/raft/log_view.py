"""The core's view of the log: its bounds, the start of each epoch, and the snapshots. No bytes.

The runner writes and syncs; emitted effects and returned events keep this view in step with it. It answers
the questions of KIP-595 and KIP-630: does a (fetch offset, last fetched epoch) continue this log? If not,
where do the logs diverge, or which snapshot must be fetched first?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch

BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)  # written by format; never replicated


class Fit(Enum):
    """How a fetcher's position relates to this log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


VALID, DIVERGING, SNAPSHOT = Fit  # looking up an enum member takes as long as finding a fetch's position


class Position(NamedTuple):
    """The relation of a position to the log, with the end of the last common epoch or the id of the snapshot
    to fetch (VALID: -1).
    """

    fit: Fit
    at: OffsetAndEpoch


_CONTINUES = Position(VALID, OffsetAndEpoch(-1, -1))


class EpochStart(NamedTuple):
    """An epoch that has records in the log, and the offset of the first."""

    epoch: int
    start_offset: int


class LogView:
    """Bounds, epochs and snapshots of one log.

    `epochs` are (epoch, start offset), ascending. `snapshots` maps snapshot id to size in bytes, the
    bootstrap checkpoint (0, 0) included. Everything that was found on opening counts as synced.
    """

    __slots__ = (
        "_epochs",
        "_snapshots",
        "earliest_snapshot",
        "end_offset",
        "latest_snapshot",
        "start_offset",
        "synced_end_offset",
    )

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Mapping[OffsetAndEpoch, int] | None = None,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.synced_end_offset = end_offset
        self._epochs = [EpochStart(*one) for one in epochs]
        self.latest_snapshot: OffsetAndEpoch | None = None
        self.earliest_snapshot: OffsetAndEpoch | None = None
        self._set_snapshots(dict(snapshots or {}))

    def __repr__(self) -> str:
        span = f"{self.start_offset}..{self.end_offset}"
        return f"<LogView {span} synced {self.synced_end_offset}, epoch {self.last_epoch}>"

    # --- questions ---

    @property
    def snapshots(self) -> Mapping[OffsetAndEpoch, int]:
        """Sizes of the snapshots in bytes, by id."""
        return self._snapshots

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of an empty log, that of the snapshot that it starts from, or 0."""
        if self._epochs:
            return self._epochs[-1].epoch
        snapshot = self.latest_snapshot
        return snapshot.epoch if snapshot is not None and snapshot.offset == self.end_offset else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """Log end and last epoch, which votes compare, the epoch first."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch at or below `epoch` and the offset at which it ended here.

        For an epoch above all of the log's, that is the log's end. For one below all, it is the epoch itself
        and the start of the lowest.
        """
        epochs = self._epochs
        if not epochs or epoch >= epochs[-1].epoch:
            if epochs and epoch == epochs[-1].epoch:
                return OffsetAndEpoch(self.end_offset, epoch)
            return self.end
        index = next(i for i, one in enumerate(epochs) if one.epoch > epoch)
        end = OffsetAndEpoch(epochs[index].start_offset, epochs[index - 1].epoch if index else epoch)
        earliest = self.earliest_snapshot
        if earliest is not None and end == (earliest.offset, epoch):
            return earliest
        return end

    def locate(self, offset: int, epoch: int) -> Position:
        """How a replica whose log ends at (offset, epoch) continues from this log (KIP-595, KIP-630)."""
        snapshot = self.latest_snapshot
        if offset == 0 and snapshot is not None and snapshot != BOOTSTRAP_SNAPSHOT:
            return Position(SNAPSHOT, snapshot)  # fetching it is cheaper than the whole log
        if offset == 0 and self.start_offset == 0:
            return _CONTINUES
        earliest = self.earliest_snapshot
        if (
            snapshot is not None
            and earliest is not None
            and (
                offset < self.start_offset
                or (offset == self.start_offset and epoch != earliest.epoch)
                or epoch < earliest.epoch
            )
        ):
            return Position(SNAPSHOT, snapshot)
        if self._epochs and epoch == self._epochs[-1].epoch and offset <= self.end_offset:
            return _CONTINUES  # the code below would return the same
        end = self.end_offset_for_epoch(epoch)
        return Position(DIVERGING, end) if end.epoch != epoch or end.offset < offset else _CONTINUES

    def may_hold(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Return whether a snapshot may hold this log's records, judged by their epochs."""
        if snapshot_id.offset > self.start_offset:
            end = self.end_offset_for_epoch(snapshot_id.epoch)
            return end.epoch == snapshot_id.epoch and snapshot_id.offset <= end.offset
        earliest = self.earliest_snapshot
        return earliest is None or snapshot_id.epoch <= earliest.epoch

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Where to truncate this log, given the offset at which the leader's log ends `diverging.epoch` or
        the last below it.
        """
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        local = self.end_offset_for_epoch(diverging.epoch)
        return min(local.offset, diverging.offset) if local.epoch == diverging.epoch else local.offset

    # --- changes ---

    def append(self, epoch: int, base_offset: int, end_offset: int) -> None:
        """Note records of `epoch` appended at the log end. Raises ValueError if they do not continue it."""
        if base_offset != self.end_offset or end_offset <= base_offset:
            raise ValueError(
                f"batch {base_offset}..{end_offset} does not continue a log that ends at {self.end_offset}"
            )
        if epoch < self.last_epoch:
            raise ValueError(f"batch of epoch {epoch} behind epoch {self.last_epoch}")
        if not self._epochs or epoch > self._epochs[-1].epoch:
            self._epochs.append(EpochStart(epoch, base_offset))
        self.end_offset = end_offset

    def sync(self, end_offset: int) -> bool:
        """Note that everything below is on stable storage; returns whether that is new."""
        end_offset = min(end_offset, self.end_offset)
        if end_offset <= self.synced_end_offset:
            return False
        self.synced_end_offset = end_offset
        return True

    def truncate_to(self, end_offset: int) -> None:
        while self._epochs and self._epochs[-1].start_offset >= end_offset:
            self._epochs.pop()
        self.end_offset = end_offset
        self.synced_end_offset = min(self.synced_end_offset, end_offset)

    def reset_to(self, snapshot_id: OffsetAndEpoch, size_bytes: int) -> None:
        """Empty the log: it starts at this snapshot, and older snapshots are gone."""
        self._epochs.clear()
        self.start_offset = self.end_offset = self.synced_end_offset = snapshot_id.offset
        self._set_snapshots({snapshot_id: size_bytes})

    def move_start(self, start_offset: int) -> None:
        """Note that segments and snapshots below were deleted; the epoch in force at the new start begins
        there.
        """
        self.start_offset = max(self.start_offset, start_offset)
        kept = [one for one in self._epochs if one.start_offset > self.start_offset]
        below = [one for one in self._epochs if one.start_offset <= self.start_offset]
        if below and self.start_offset < self.end_offset:
            kept.insert(0, EpochStart(below[-1].epoch, self.start_offset))
        self._epochs = kept
        self._set_snapshots(
            {one: size for one, size in self._snapshots.items() if one.offset >= self.start_offset}
        )

    def add_snapshot(self, snapshot_id: OffsetAndEpoch, size_bytes: int) -> None:
        self._set_snapshots({**self._snapshots, snapshot_id: size_bytes})

    def drop_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note that a snapshot was deleted, if it was known."""
        self._set_snapshots({one: size for one, size in self._snapshots.items() if one != snapshot_id})

    def _set_snapshots(self, snapshots: dict[OffsetAndEpoch, int]) -> None:
        self._snapshots = snapshots
        self.latest_snapshot = max(snapshots, key=_by_epoch, default=None)  # every fetch reads these two
        self.earliest_snapshot = min(snapshots, key=_by_epoch, default=None)


def _by_epoch(snapshot_id: OffsetAndEpoch) -> tuple[int, int]:
    return snapshot_id.epoch, snapshot_id.offset
