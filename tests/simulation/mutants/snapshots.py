"""Defects of snapshots: in making, fetching, keeping and deleting them."""

from __future__ import annotations

from typing import Any

from kraftd.metadata_dir.files.checkpoint import CheckpointWriter
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.raft import core as raft_core
from kraftd.raft import leader, snapshots
from kraftd.raft.effects import BeginSnapshot
from kraftd.raft.replica import Replica
from kraftd.types import OffsetAndEpoch
from tests.simulation.mutants.planted import Planted


def forget_the_last_record(patch: Any) -> None:
    """S10: a snapshot lacks a record of its image."""
    append = CheckpointWriter.append

    def short(self: Any, values: Any) -> None:
        append(self, values[:-1] if self._part.snapshot_id.offset else values)

    patch.setattr(CheckpointWriter, "append", short)


def forget_the_voters(patch: Any) -> None:
    """S10: a snapshot has no record of the voters."""
    create = CheckpointWriter.__init__

    def without(self: Any, disk: Any, directory: str, snapshot_id: OffsetAndEpoch, **options: Any) -> None:
        if snapshot_id.offset:  # offset 0 is the bootstrap checkpoint
            options["voters"] = None
        create(self, disk, directory, snapshot_id, **options)

    patch.setattr(CheckpointWriter, "__init__", without)


def begin_the_log_between_snapshots(patch: Any) -> None:
    """S10: the log start moves one record past the snapshot's end."""
    delete = MetadataLog.delete_before_snapshot

    def further(self: MetadataLog, snapshot_id: OffsetAndEpoch) -> bool:
        moved = delete(self, snapshot_id)
        if moved and self.log_start < self.log_end:
            self.log_start += 1
        return moved

    patch.setattr(MetadataLog, "delete_before_snapshot", further)


def clean_up_before_the_leader(patch: Any) -> None:
    """S10: a follower moves its log start past its leader's."""
    patch.setattr(raft_core.RaftCore, "log_start_limit", property(lambda self: 1 << 62))


def download_as_leader(patch: Any) -> None:
    """S11: a new leader begins to fetch a snapshot."""
    become = leader.become_leader

    def and_begin(replica: Replica) -> None:
        become(replica)
        replica.emit(BeginSnapshot(OffsetAndEpoch(1, 1)))

    patch.setattr(raft_core.election, "become_leader", and_begin)


def never_download(patch: Any) -> None:
    """L4: a replica that needs a snapshot does not fetch it."""
    patch.setattr(snapshots, "begin_download", lambda replica, role, snapshot_id: False)


def begin_every_download_anew(patch: Any) -> None:
    """L4, with small pieces: a download of more than 200 bytes neither continues nor is given up."""
    take_in = snapshots._take_in

    def never_done(replica: Replica, download: Any, piece: Any) -> bool:
        goes_on = take_in(replica, download, piece)
        if download.finishing:
            return goes_on
        return goes_on and download.position < 200

    patch.setattr(snapshots, "_take_in", never_done)


OFTEN: dict[str, Any] = {"snapshot_bytes": 1_000, "snapshot_ratio": 0.0, "retention_bytes": 1_000}

ALL: dict[Any, Planted] = {
    forget_the_last_record: Planted("S10", **OFTEN),
    forget_the_voters: Planted("S10", dynamic=True, **OFTEN),
    begin_the_log_between_snapshots: Planted("S10", snapshot_kept_after_read_ms=0, **OFTEN),
    clean_up_before_the_leader: Planted("S10", snapshot_kept_after_read_ms=0, voter_count=3, **OFTEN),
    download_as_leader: Planted("S11"),
    never_download: Planted("L4", voter_count=3, faults=("kill", "pause"), **OFTEN),
    begin_every_download_anew: Planted(
        "L4", voter_count=3, faults=("kill", "pause"), fetch_max_bytes=200, **OFTEN
    ),
}
