"""The metadata log of one replica: a partition's log whose beginning snapshots replace.

The log starts at 0 or at the end of a snapshot; older snapshots are deleted with the segments below it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.log.disk import Disk
from kraftd.log.epochs import EpochCache
from kraftd.log.partition_log import OffsetOutOfRange as OffsetOutOfRange
from kraftd.log.partition_log import PartitionLog
from kraftd.log.segment import Segment
from kraftd.log.settings import LogSettings as LogSettings
from kraftd.log.tail import Tail
from kraftd.metadata_dir.files.checkpoint import by_epoch, checkpoint_path
from kraftd.types import OffsetAndEpoch


class MetadataLog(PartitionLog):
    """`snapshots` are the ids of the checkpoints on disk, oldest first."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        segments: list[Segment],
        epochs: EpochCache,
        log_start: int,
        log_end: int,
        snapshots: Iterable[OffsetAndEpoch] = (),
        tail: Tail | None = None,
    ) -> None:
        self.snapshots: list[OffsetAndEpoch] = sorted(snapshots, key=by_epoch)
        at_start = [each.epoch for each in self.snapshots if each.offset == log_start]
        start_epoch = at_start[-1] if at_start else 0
        super().__init__(disk, directory, settings, segments, epochs, log_start, log_end, start_epoch, tail)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1] if self.snapshots else None

    def reset_to_snapshot(self, snapshot_id: OffsetAndEpoch, keep_from: int | None = None) -> None:
        """Drop the whole log and the older snapshots. It then starts and ends at this snapshot, which must
        exist. The records from keep_from on, which it may not hold, are copied first; None for none.
        """
        self.truncate_fully_to(snapshot_id.offset, snapshot_id.epoch, keep_from)
        self._forget_snapshots_before(snapshot_id)

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note that a checkpoint of this id is now on disk."""
        if snapshot_id not in self.snapshots:
            self.snapshots = sorted([*self.snapshots, snapshot_id], key=by_epoch)

    def forget_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Drop a snapshot whose checkpoint is gone, or was damaged and set aside."""
        self.snapshots = [each for each in self.snapshots if each != snapshot_id]

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Let the log start at this snapshot; drop older snapshots and the segments wholly below it.

        Returns False, and changes nothing, if there is no such snapshot or the log starts there already.
        """
        if snapshot_id not in self.snapshots or not self.delete_before(snapshot_id.offset):
            return False
        self._forget_snapshots_before(snapshot_id)
        return True

    def _forget_snapshots_before(self, snapshot_id: OffsetAndEpoch) -> None:
        kept = self.snapshots.index(snapshot_id)
        removed, self.snapshots = self.snapshots[:kept], self.snapshots[kept:]

        def remove() -> None:
            for each in removed:
                self._disk.remove(checkpoint_path(self.directory, each))

        if removed:
            self._remove_files(remove)
