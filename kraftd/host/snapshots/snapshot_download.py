"""The download of a leader's snapshot: the core's effects that fill, name and load it (KIP-630)."""

from __future__ import annotations

from kraftd.log.disk import Disk
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    PartFile,
    checkpoint_path,
    part_name,
    verify_checkpoint,
)
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.raft import effects as raft_effects
from kraftd.raft.events import SnapshotFinished
from kraftd.replica.effects import OpenSnapshot
from kraftd.replica.events import SnapshotOpened
from kraftd.types import OffsetAndEpoch

SYNC_BYTES = 32 << 20


class SnapshotDownload:
    """The download under way, if any. Every method may raise StorageError; `finish` blocks."""

    def __init__(self, disk: Disk, log: MetadataLog) -> None:
        self._disk = disk
        self._log = log
        self.reader: CheckpointReader | None = None  # of the last opened snapshot
        self._part: PartFile | None = None

    def begin(self, effect: raft_effects.BeginSnapshot) -> None:
        held, self._part = self._part, None
        if held is not None and held.snapshot_id != effect.snapshot_id:
            held.abandon()
        elif held is not None:
            held.close()
        self._part = PartFile(self._disk, self._log.directory, effect.snapshot_id, effect.position)

    def write(self, effect: raft_effects.WriteSnapshot) -> None:
        part = self._part
        assert part is not None
        part.append(effect.data)
        # So that the final sync is short: this voter sends nothing to the leader during it.
        if part.unsynced_bytes >= SYNC_BYTES:
            part.sync()

    def abandon(self, effect: raft_effects.AbandonSnapshot) -> None:
        """Delete the download, also one of the previous process."""
        if self._part is not None and self._part.snapshot_id == effect.snapshot_id:
            self._part.abandon()
            self._part = None
        else:
            self._disk.remove(f"{self._log.directory}/{part_name(effect.snapshot_id, download=True)}")

    def finish(self, effect: raft_effects.FinishSnapshot) -> SnapshotFinished:
        """Sync it, check it, name it, read its control batches. To be run off the event loop.

        Raises CorruptStorage if it is no whole snapshot; then it must be refused.
        """
        part = self._part
        assert part is not None
        part.freeze(verify_checkpoint)
        reader = CheckpointReader(self._disk, checkpoint_path(self._log.directory, effect.snapshot_id))
        try:
            control = tuple(bytes(batch.view) for batch in reader.leading_control_batches())
        finally:
            reader.close()
        self._part = None
        return SnapshotFinished(effect.snapshot_id, part.size_bytes, control)

    def refuse(self) -> OffsetAndEpoch | None:
        """Delete a download that finish refused to name; returns its id."""
        part, self._part = self._part, None
        if part is None:
            return None
        part.abandon()
        return part.snapshot_id

    def named(self, event: SnapshotFinished) -> None:
        """Note, on the event loop, that the snapshot is stored and the log may be reset to it."""
        self._log.add_snapshot(event.snapshot_id)

    def open(self, effect: OpenSnapshot) -> SnapshotOpened:
        reader = CheckpointReader(self._disk, checkpoint_path(self._log.directory, effect.snapshot_id))
        self.reader = reader
        return SnapshotOpened(effect.snapshot_id, reader.runs())

    def __repr__(self) -> str:
        return f"<SnapshotDownload {self._part!r}>"
