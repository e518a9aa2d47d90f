"""Opening the metadata log: its segments (`kraftd.log.opening`), and the checkpoints that precede them.

It cleans up after a crash, refuses damage, and reports all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import CorruptStorage, DirectoryProblem
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
from kraftd.metadata_dir.files.checkpoint import by_epoch
from kraftd.metadata_dir.files.found_files import FoundFiles, find_files
from kraftd.metadata_dir.files.high_watermark import FILE_NAME as HIGH_WATERMARK
from kraftd.metadata_dir.files.high_watermark import Mark
from kraftd.metadata_dir.lost_log import check_nothing_is_lost
from kraftd.metadata_dir.metadata_log import LogSettings, MetadataLog
from kraftd.metadata_dir.sound_checkpoints import begin_at_checkpoint, keep_sound
from kraftd.named_tuple import NamedTuple
from kraftd.types import METADATA_TOPIC_ID, OffsetAndEpoch, parse_uuid, uuid_text
from kraftd.wire.batch import iter_batches

_READ_BYTES = 4 << 20


class OpenedLog(NamedTuple):
    """An opened log, the report of its recovery, and the control batches after the newest snapshot, which
    were read on the way. `mark` is the high watermark on the disk, `download` the id and the size of a
    checkpoint that the last process did not finish.
    """

    log: MetadataLog
    report: RecoveryReport
    control_batches: Sequence[bytes]
    mark: Mark
    download: tuple[OffsetAndEpoch, int] | None


def open_log(disk: Disk, directory: str, settings: LogSettings | None = None) -> OpenedLog:
    """Open the log in a partition's directory, which is made if missing.

    The phases run once, in this order: look, refuse, clean up, read, choose checkpoints, join. Until the last
    two, only leftovers and a torn tail go. Raises CorruptStorage for damage other than a torn tail,
    DirectoryProblem, DiskFull, ReadOnlyStorage.
    """
    settings = settings or LogSettings()
    report = RecoveryReport()
    disk.make_directory(directory)
    found = find_files(disk, directory)
    only_checkpoint = check_nothing_is_lost(disk, directory, found)
    _check_partition_metadata(disk, directory)
    report.notes += [note for note in (only_checkpoint, _refused(found.mark)) if note is not None]
    _clean_up(disk, directory, found, report)
    opened, seen = _read_segments(disk, directory, settings, found, report)
    snapshots = keep_sound(disk, directory, found.snapshots, opened.log_start, opened.log_end, report)
    first_base = opened.settle(snapshots[-1].offset if snapshots else 0)
    log_start, snapshots = begin_at_checkpoint(disk, directory, first_base, snapshots, report)
    tail = seen.tail if seen.tail.end_offset == opened.log_end else None
    log = MetadataLog(
        disk, directory, settings, opened.segments, opened.epochs, log_start, opened.log_end, snapshots, tail
    )
    latest = log.latest_snapshot
    control_batches: Sequence[bytes] = seen.control_batches
    if latest is not None and by_epoch(latest) > (log.epochs.latest or 0, log.log_end):
        is_empty = log.log_end == first_base == latest.offset  # a snapshot replaced the log
        if only_checkpoint is None and not is_empty:
            report.notes.append(
                f"the log ended at {log.log_end}, before the newest snapshot {latest}: it starts anew there"
            )
        log.reset_to_snapshot(latest, max(found.mark.high_watermark, log.log_start))
        log.sync()
        control_batches = ()
    else:
        opened.write_epochs()
    if snapshots[-1:] != found.snapshots[-1:]:
        control_batches = _read_control_batches(log)  # the newest was damaged: an older one counts
    return OpenedLog(log, report, control_batches, found.mark, found.download)


def _clean_up(disk: Disk, directory: str, found: FoundFiles, report: RecoveryReport) -> None:
    """Remove leftovers of interrupted writes, deletions and swaps."""
    for name in found.leftovers:
        remove_leftover(disk, directory, name, report)
    sweep_segments(disk, directory, report)
    KeptRecords(disk, f"{directory}/{TRUNCATED_DIRECTORY}").sweep()


def _read_segments(
    disk: Disk, directory: str, settings: LogSettings, found: FoundFiles, report: RecoveryReport
) -> tuple[OpenedSegments, FirstPass]:
    """Read the log once, behind the newest checkpoint. Raises CorruptStorage."""
    newest = found.newest or OffsetAndEpoch(0, -1)
    opened = OpenedSegments(disk, directory, settings, report)
    seen = FirstPass(settings, *newest, found.mark.high_watermark)
    opened.load(seen)
    _check_mark(directory, found.mark, opened.epochs, newest)
    return opened, seen


def _refused(mark: Mark) -> str | None:
    """A sentence for the operator about a leader's demand that is not settled yet, if there is one."""
    demand = mark.refused
    if demand is None:
        return None
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
