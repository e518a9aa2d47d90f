"""Opening the metadata log: its segments (`kraftd.log.opening`), and the checkpoints that precede them.

It cleans up after a crash, refuses damage, and reports all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import EpochCache, encode_epochs
from kraftd.log.errors import CheckpointMissing, CorruptStorage, DirectoryProblem
from kraftd.log.kept_records import TRUNCATED_DIRECTORY, KeptRecords
from kraftd.log.opening import (
    FirstPass,
    OpenedSegments,
    RecoveryReport,
    remove_leftover,
    sweep_segments,
)
from kraftd.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from kraftd.log.partition_metadata import encode_topic_id
from kraftd.log.segment import Segment
from kraftd.metadata_dir.checkpoint import (
    CheckpointReader,
    by_epoch,
    checkpoint_path,
    find_download,
    list_checkpoints,
    part_name,
    set_aside,
    verify_checkpoint,
)
from kraftd.metadata_dir.high_watermark import FILE_NAME as HIGH_WATERMARK
from kraftd.metadata_dir.high_watermark import Mark, Refusal, read_mark
from kraftd.metadata_dir.lost_log import check_nothing_is_lost
from kraftd.metadata_dir.metadata_log import LogSettings, MetadataLog
from kraftd.types import METADATA_TOPIC_ID, OffsetAndEpoch, parse_uuid, uuid_text
from kraftd.wire.batch import iter_batches

_READ_BYTES = 4 << 20
_FIRST_REMEDY = (
    "It holds the voters that the quorum began with, as the log does once a leader was elected: if this node "
    "has served before, move the file aside; otherwise put a copy back, or format the directory anew"
)


class OpenedLog(NamedTuple):
    """An opened log, the report of its recovery, and the control batches after the newest snapshot, which
    were read on the way. `mark` is the high watermark on the disk.
    """

    log: MetadataLog
    report: RecoveryReport
    control_batches: Sequence[bytes]
    mark: Mark


def open_log(disk: Disk, directory: str, settings: LogSettings | None = None) -> OpenedLog:
    """Open the log in a partition's directory, which is made if missing.

    Raises CorruptStorage for damage other than a torn tail, DirectoryProblem, DiskFull, ReadOnlyStorage.
    """
    settings = settings or LogSettings()
    report = RecoveryReport()
    disk.make_directory(directory)
    lost = check_nothing_is_lost(disk, directory)
    if lost is not None:
        report.notes.append(lost)
    _check_partition_metadata(disk, directory)
    mark = read_mark(disk, directory)
    if mark.refused is not None:
        report.notes.append(_refused(mark.refused))
    snapshots = _sweep(disk, directory, report)
    KeptRecords(disk, f"{directory}/{TRUNCATED_DIRECTORY}").sweep()
    opened = OpenedSegments(disk, directory, settings, report)
    segments, epochs = opened.segments, opened.epochs
    newest = snapshots[-1] if snapshots and snapshots[-1].offset > 0 else OffsetAndEpoch(0, -1)
    seen = FirstPass(settings, *newest, mark.high_watermark)
    opened.load(seen)
    _check_mark(directory, mark, epochs, newest)
    log_end, first_base = opened.log_end, segments[0].base_offset if segments else None
    found = list(snapshots)
    snapshots = _check_newest(disk, directory, snapshots, first_base, log_end, report)
    snapshots = _check_older(disk, directory, snapshots, report)
    if not segments:
        log_end = snapshots[-1].offset if snapshots else 0
        epochs.clear()
        segments.append(Segment(directory, log_end, settings.index_interval_bytes))
        segments[0].create(disk)
    epochs.truncate_from_end(log_end)
    epochs.truncate_from_start(segments[0].base_offset)
    log_start, snapshots = _reconcile(disk, directory, segments[0].base_offset, snapshots, report)
    tail = seen.tail if seen.tail.end_offset == log_end else None
    log = MetadataLog(disk, directory, settings, segments, epochs, log_start, log_end, snapshots, tail)
    control_batches: Sequence[bytes] = seen.control_batches
    latest = log.latest_snapshot
    if latest is not None and by_epoch(latest) > (log.epochs.latest or 0, log_end):
        is_empty = log.log_end == segments[0].base_offset == latest.offset  # a snapshot replaced the log
        if lost is None and not is_empty:
            report.notes.append(
                f"the log ended at {log_end}, before the newest snapshot {latest}: it starts anew there"
            )
        log.reset_to_snapshot(latest, max(mark.high_watermark, log.log_start))
        log.sync()
        control_batches = ()
    elif epochs.entries != opened.epochs_on_disk:
        if segments[-1].file is not None:
            segments[-1].file.sync()  # the epoch file proves that it is synced
        write_atomically(disk, f"{directory}/{EPOCHS_FILE_NAME}", encode_epochs(epochs.entries))
    if snapshots[-1:] != found[-1:]:
        control_batches = _read_control_batches(log)  # the newest was damaged: an older one counts
    return OpenedLog(log, report, control_batches, mark)


def _refused(demand: Refusal) -> str:
    """A sentence for the operator about a demand that is not settled yet."""
    return (
        f"leader {demand.leader_id} of epoch {demand.leader_epoch} asked this node to drop records from "
        f"offset {demand.offset} on, and it knows some of them as committed. While a leader asks for that, a "
        "start ends with exit code 3; kraftd quorum discard names what would be dropped"
    )


def _check_mark(directory: str, mark: Mark, epochs: EpochCache, newest: OffsetAndEpoch) -> None:
    """Raise CorruptStorage if the last record that the mark counts as committed is of another epoch now."""
    if mark.high_watermark <= newest.offset:
        return
    epoch = epochs.epoch_of(mark.high_watermark - 1)
    if epoch is not None and epoch != mark.epoch:
        offset = mark.high_watermark - 1
        raise CorruptStorage(
            f"{directory}/{HIGH_WATERMARK}",
            0,
            offset,
            f"the record of this offset was committed in epoch {mark.epoch}, and the log has one of epoch "
            f"{epoch} there: other records have replaced those that this node knew as committed",
            "Put the log back from a copy; if the log is right, move this file aside",
        )


def _read_control_batches(log: MetadataLog) -> list[bytes]:
    """The control batches after the newest snapshot. Raises CorruptStorage."""
    latest = log.latest_snapshot
    start = max(log.log_start, latest.offset if latest is not None else 0)
    found = []
    while start < log.log_end:
        for batch in iter_batches(log.read(start, _READ_BYTES), verify=False):
            if batch.header.is_control:
                found.append(bytes(batch.view))
            start = batch.header.next_offset
    return found


def _check_partition_metadata(disk: Disk, directory: str) -> None:
    """Check the topic id in `partition.metadata`; write the file if it is missing."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        text = disk.read_bytes(path).decode(errors="replace")
    except FileNotFoundError:
        text = ""
    if not text.strip():
        write_atomically(disk, path, encode_topic_id(METADATA_TOPIC_ID))
        return
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        found = parse_uuid(fields.get("topic_id", ""))
    except ValueError:
        found = b""
    if found != METADATA_TOPIC_ID:
        raise DirectoryProblem(
            f"{path} names topic id {fields.get('topic_id')!r}, the metadata log has "
            f"{uuid_text(METADATA_TOPIC_ID)}. "
            "This is no directory of a metadata log; check metadata.log.dir. If it is one, the file is "
            "damaged: remove it, and it is made anew"
        )


def _sweep(disk: Disk, directory: str, report: RecoveryReport) -> list[OffsetAndEpoch]:
    """Remove leftovers of interrupted writes, deletions and swaps; returns the whole snapshots.

    The newest download that is ahead of them stays, to be resumed.
    """
    snapshots, leftovers = list_checkpoints(disk, directory)
    download = find_download(disk, directory)
    if (
        download is not None
        and download[1]
        and (not snapshots or by_epoch(download[0]) > by_epoch(snapshots[-1]))
    ):
        leftovers.remove(part_name(download[0], download=True))
    for name in leftovers:
        remove_leftover(disk, directory, name, report)
    sweep_segments(disk, directory, report)
    return snapshots


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


def _reconcile(
    disk: Disk, directory: str, first_base: int, snapshots: list[OffsetAndEpoch], report: RecoveryReport
) -> tuple[int, list[OffsetAndEpoch]]:
    """The log start and the kept snapshots: a log that does not begin at 0 starts at a snapshot's end."""
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
