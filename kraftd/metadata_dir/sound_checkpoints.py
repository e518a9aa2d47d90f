"""Which checkpoints a start keeps, once the log is read: sound ones that the log continues."""

from __future__ import annotations

from kraftd.log.disk import Disk
from kraftd.log.errors import CheckpointMissing, CorruptStorage
from kraftd.log.opening import RecoveryReport
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    checkpoint_path,
    set_aside,
    verify_checkpoint,
)
from kraftd.types import OffsetAndEpoch

_FIRST_REMEDY = (
    "It holds the voters that the quorum began with, as the log does once a leader was elected: if this node "
    "has served before, move the file aside; otherwise put a copy back, or format the directory anew"
)


def keep_sound(
    disk: Disk,
    directory: str,
    snapshots: list[OffsetAndEpoch],
    first_base: int | None,
    log_end: int,
    report: RecoveryReport,
) -> list[OffsetAndEpoch]:
    """Set damaged checkpoints aside; returns the others. first_base is where the first segment begins.

    Raises CorruptStorage for a damaged one that neither log nor other checkpoints make dispensable.
    """
    kept = _check_newest(disk, directory, snapshots, first_base, log_end, report)
    return _check_older(disk, directory, kept, report)


def _check_newest(
    disk: Disk,
    directory: str,
    snapshots: list[OffsetAndEpoch],
    first_base: int | None,
    log_end: int,
    report: RecoveryReport,
) -> list[OffsetAndEpoch]:
    """The snapshots, of which the newest was read whole and is sound. A damaged one is set aside if the log,
    with an older snapshot if needed, holds the same. Otherwise raises CorruptStorage and changes nothing.
    """
    damaged: list[CorruptStorage] = []
    kept = list(snapshots)
    while kept and kept[-1].offset > 0:
        newest = kept.pop()
        try:
            verify_checkpoint(disk, checkpoint_path(directory, newest))
        except CorruptStorage as error:
            covered = first_base is not None and (
                first_base == 0 or any(each.offset >= first_base for each in kept)
            )
            if not covered or log_end < newest.offset:
                raise CorruptStorage(
                    error.path,
                    error.position,
                    newest.offset,
                    f"{error.reason}, and without this checkpoint the log does not reach back far enough",
                    "Put a copy of the file back; or, with other voters up, move it aside and start this "
                    "node again: then a snapshot is fetched from the leader",
                ) from None
            damaged.append(error)
        else:
            kept.append(newest)
            break
    for snapshot_id, found in zip(reversed(snapshots), damaged, strict=False):
        aside = set_aside(disk, directory, snapshot_id)
        report.notes.append(f"{found.found}. It was set aside as {aside}; the log is read from farther back")
    return kept


def _check_older(
    disk: Disk, directory: str, snapshots: list[OffsetAndEpoch], report: RecoveryReport
) -> list[OffsetAndEpoch]:
    """The snapshots without those of unreadable header that a sound newer one makes dispensable.

    Raises CorruptStorage for a directory's first checkpoint (0-0) if there is no newer one.
    """
    kept = []
    for each in snapshots:
        try:
            CheckpointReader(disk, checkpoint_path(directory, each)).close()
        except CorruptStorage as error:
            if each == snapshots[-1]:
                raise CorruptStorage(
                    error.path, error.position, each.offset, error.reason, _FIRST_REMEDY
                ) from None
            aside = set_aside(disk, directory, each)
            report.notes.append(f"{error.found}. It was set aside as {aside}; a newer checkpoint is sound")
        else:
            kept.append(each)
    return kept


def begin_at_checkpoint(
    disk: Disk, directory: str, first_base: int, snapshots: list[OffsetAndEpoch], report: RecoveryReport
) -> tuple[int, list[OffsetAndEpoch]]:
    """The log start, and the checkpoints that are kept: a log that does not begin at 0 starts at the end of
    one. Raises CheckpointMissing.
    """
    if first_base == 0:
        return 0, snapshots
    kept = [each for each in snapshots if each.offset >= first_base]
    if not kept:
        newest = f"the newest is {snapshots[-1]}" if snapshots else "there is none"
        raise CheckpointMissing(
            directory,
            first_base,
            f"{directory} holds a log from offset {first_base} on and no checkpoint at or past it "
            f"({newest}): what was before is lost",
            "Put the checkpoint back; or start this node when the quorum has a leader that "
            "controller.quorum.bootstrap.servers or controller.quorum.voters lead to: then a snapshot of the "
            "leader's is fetched",
        )
    for each in snapshots:
        if each not in kept:
            disk.remove(checkpoint_path(directory, each))
            report.notes.append(f"checkpoint {each} was removed: the log starts behind it")
    return min(each.offset for each in kept), kept
