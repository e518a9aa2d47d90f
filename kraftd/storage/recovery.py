"""Opening a log: what a crash left is put in order, what a disk damaged is refused, all of it is reported.

The last segment is read whole and its checksums computed. The others were synced before their successor had a
name, so their indexes are trusted as far as the batches behind the last entry lead to where the next begins.
"""

from __future__ import annotations

from kraftd.storage.checkpoint import (
    CheckpointReader,
    by_epoch,
    checkpoint_path,
    find_download,
    list_checkpoints,
    part_name,
    set_aside,
    verify_checkpoint,
)
from kraftd.storage.disk import Disk, write_atomically
from kraftd.storage.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.storage.epochs import EpochCache, decode_epochs, encode_epochs
from kraftd.storage.errors import CheckpointMissing, CorruptStorage, DirectoryProblem
from kraftd.storage.log import LogSettings, MetadataLog
from kraftd.storage.lost_log import check_nothing_is_lost
from kraftd.storage.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    SegmentIndex,
    find_valid_batch,
    offset_of_name,
    scan,
)
from kraftd.types import METADATA_TOPIC_ID, OffsetAndEpoch, parse_uuid, uuid_text
from kraftd.wire.batch import BatchHeader, CorruptBatch

PARTITION_METADATA = "partition.metadata"
_REMEDY = (
    "Restore the file from a copy; or, with other voters up, move the directory aside, format it anew and "
    "let "
    "this node catch up from the leader"
)

_FIRST_REMEDY = (
    "It holds the voters that the quorum began with, as the log does once a leader was elected: if this node "
    "has served before, move the file aside; otherwise put a copy back, or format the directory anew"
)


class RecoveryReport:
    """What was found and done on opening. notes are sentences for the log, none when all was in order."""

    __slots__ = ("notes", "scanned_bytes", "truncated_bytes")

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.scanned_bytes = 0
        self.truncated_bytes = 0

    def __repr__(self) -> str:
        read, cut = self.scanned_bytes, self.truncated_bytes
        return f"<RecoveryReport {read} bytes read, {cut} cut off, {len(self.notes)} notes>"


def open_log(
    disk: Disk, directory: str, settings: LogSettings | None = None
) -> tuple[MetadataLog, RecoveryReport]:
    """The log in a partition's directory (made if missing), ready to go on, and what had to be done.

    Raises CorruptStorage for damage that is no torn tail, DirectoryProblem, DiskFull, ReadOnlyStorage.
    """
    settings = settings or LogSettings()
    report = RecoveryReport()
    disk.make_directory(directory)
    lost = check_nothing_is_lost(disk, directory)
    if lost is not None:
        report.notes.append(lost)
    _check_partition_metadata(disk, directory)
    snapshots = _sweep(disk, directory, report)
    bases = sorted(
        offset
        for name in disk.list_names(directory)
        if name.endswith(LOG_SUFFIX) and (offset := offset_of_name(name)) is not None
    )
    segments = [Segment(directory, base, settings.index_interval_bytes) for base in bases]
    epochs = _load_epochs(disk, directory, report)
    before = epochs.entries
    log_end = _load_segments(disk, segments, epochs, report)
    snapshots = _check_newest(disk, directory, snapshots, bases[0] if bases else None, log_end, report)
    snapshots = _check_older(disk, directory, snapshots, report)
    if not segments:
        log_end = snapshots[-1].offset if snapshots else 0
        epochs.clear()
        segments.append(Segment(directory, log_end, settings.index_interval_bytes))
        segments[0].create(disk)
    epochs.truncate_from_end(log_end)
    epochs.truncate_from_start(segments[0].base_offset)
    log_start, snapshots = _reconcile(disk, directory, segments[0].base_offset, snapshots, report)
    log = MetadataLog(disk, directory, settings, segments, epochs, log_start, log_end, snapshots)
    latest = log.latest_snapshot
    if latest is not None and by_epoch(latest) > (log.epochs.latest or 0, log_end):
        if lost is None:
            report.notes.append(
                f"the log ended at {log_end}, before the newest snapshot {latest}: it starts anew there"
            )
        log.truncate_fully_to(latest)
        log.sync()
    elif epochs.entries != before:
        write_atomically(disk, f"{directory}/{EPOCHS_FILE_NAME}", encode_epochs(epochs.entries))
    return log, report


def _check_partition_metadata(disk: Disk, directory: str) -> None:
    """`partition.metadata` names the topic id; written when missing."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        text = disk.read_bytes(path).decode(errors="replace")
    except FileNotFoundError:
        text = ""
    if not text.strip():
        content = f"version: 0\ntopic_id: {uuid_text(METADATA_TOPIC_ID)}".encode()
        write_atomically(disk, path, content)
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
    """Remove what an interrupted write, delete or swap left; returns the snapshots that are whole.

    The newest download that is ahead of them stays: it is gone on with.
    """
    snapshots, leftovers = list_checkpoints(disk, directory)
    download = find_download(disk, directory)
    if (
        download is not None
        and download[1]
        and (not snapshots or by_epoch(download[0]) > by_epoch(snapshots[-1]))
    ):
        leftovers.remove(part_name(download[0], download=True))
    for name in disk.list_names(directory):
        if name.endswith(".swap") and offset_of_name(name) is not None:
            # Kafka's swap: the new files are complete, they only lack their names.
            disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix('.swap')}")
            report.notes.append(f"{name} was renamed: a swap had been interrupted")
    names = disk.list_names(directory)
    logs = {name[:20] for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        of_segment = offset_of_name(name) is not None
        if (
            (of_segment and name.endswith((".deleted", ".cleaned")))
            or (of_segment and name.endswith((".index", ".timeindex", ".txnindex")) and name[:20] not in logs)
            or name.endswith(".tmp")
        ):
            leftovers.append(name)
    for name in leftovers:
        disk.remove(f"{directory}/{name}")
        report.notes.append(f"{name} was removed: it was left over from an interrupted write or delete")
    return snapshots


def _load_epochs(disk: Disk, directory: str, report: RecoveryReport) -> EpochCache:
    try:
        entries = decode_epochs(disk.read_bytes(f"{directory}/{EPOCHS_FILE_NAME}"))
    except FileNotFoundError:
        return EpochCache()
    if entries is None:
        report.notes.append(f"{EPOCHS_FILE_NAME} is no such file and is made anew from the log")
        return EpochCache()
    return EpochCache(entries)


def _load_segments(
    disk: Disk,
    segments: list[Segment],
    epochs: EpochCache,
    report: RecoveryReport,
) -> int:
    """Open all segments and their indexes; returns the log end."""
    log_end = 0
    if not segments:
        return log_end
    # The file of epochs knows those of segments that are gone; what the segments say themselves goes above
    # it.
    known = epochs.epoch_of(segments[0].base_offset) is not None
    if not known:
        epochs.clear()
    for at, segment in enumerate(segments):
        segment.file = disk.open(segment.path())
        if at and segment.base_offset != log_end:
            raise CorruptStorage(
                segments[at - 1].path(),
                segments[at - 1].end_position,
                log_end,
                f"the log ends here, the next segment begins with {segment.base_offset}",
                _REMEDY,
            )
        is_last = at == len(segments) - 1
        if (
            not is_last
            and known
            and _trust_index(disk, segment, segments[at + 1].base_offset, epochs, report)
        ):
            log_end = segments[at + 1].base_offset
        else:
            log_end = _scan_segment(disk, segment, epochs, report, is_last=is_last)
    return log_end


def _trust_index(disk: Disk, segment: Segment, end: int, epochs: EpochCache, report: RecoveryReport) -> bool:
    """Take a closed segment as its index tells it, if that leads to end."""
    file = segment.file
    assert file is not None
    size_bytes = file.size_bytes()
    try:
        index = SegmentIndex.load(
            segment.base_offset,
            disk.read_bytes(segment.path(OFFSET_INDEX_SUFFIX)),
            disk.read_bytes(segment.path(TIME_INDEX_SUFFIX)),
            size_bytes,
        )
    except FileNotFoundError:
        index = None
    if index is None:
        report.notes.append(f"{segment.path(OFFSET_INDEX_SUFFIX)} is missing or wrong and is made anew")
        return False
    entry = index.last_entry
    start = entry[1] if entry is not None else 0
    last: BatchHeader | None = None
    try:
        first = next(scan(file, 0, size_bytes, verify=False, chunk_bytes=4096)).header
        for header, _, _ in scan(file, start, size_bytes, verify=False):
            if last is None and entry is not None and header.last_offset != entry[0]:
                return False
            if last is not None and header.base_offset != last.next_offset:
                return False
            last = header
    except (CorruptBatch, StopIteration):
        return False
    if first.base_offset != segment.base_offset or last is None or last.next_offset != end:
        return False
    if epochs.epoch_of(last.base_offset) != last.leader_epoch:
        return False
    if last.max_timestamp_ms > index.max_time[0]:
        index.max_time = (last.max_timestamp_ms, last.last_offset)
    segment.index = index
    segment.end_position = size_bytes
    segment.first_timestamp_ms = first.max_timestamp_ms
    report.scanned_bytes += size_bytes - start
    return True


def _scan_segment(
    disk: Disk, segment: Segment, epochs: EpochCache, report: RecoveryReport, *, is_last: bool
) -> int:
    """Read a segment whole, index it, cut a torn tail off the last one; returns the offset behind it."""
    file = segment.file
    assert file is not None
    size_bytes = file.size_bytes()
    expected = segment.base_offset
    try:
        for header, _, position in scan(file, 0, size_bytes):
            if header.base_offset != expected:
                raise CorruptStorage(
                    segment.path(),
                    position,
                    expected,
                    f"a batch of offset {header.base_offset} is here",
                    _REMEDY,
                )
            latest = epochs.latest
            if latest is None or header.leader_epoch > latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            segment.add(header)
            expected = header.next_offset
    except CorruptBatch as error:
        valid = None if not is_last else find_valid_batch(file, error.position + 1, size_bytes, expected)
        if not is_last or valid is not None:
            more = (
                "" if valid is None else f"; a valid batch follows at byte {valid}, so this is no torn tail"
            )
            raise CorruptStorage(
                segment.path(), error.position, expected, error.reason + more, _REMEDY
            ) from None
        cut_bytes = size_bytes - error.position
        report.truncated_bytes += cut_bytes
        report.notes.append(
            f"{segment.path()} was cut at byte {error.position} (offset {expected}): the {cut_bytes} bytes "
            f"behind it are a write that a crash had interrupted ({error.reason})"
        )
        file.truncate(error.position)
        file.sync()
    report.scanned_bytes += size_bytes
    if not is_last:
        segment.write_indexes(disk)
    return expected


def _check_newest(
    disk: Disk,
    directory: str,
    snapshots: list[OffsetAndEpoch],
    first_base: int | None,
    log_end: int,
    report: RecoveryReport,
) -> list[OffsetAndEpoch]:
    """The snapshots, the newest of them read whole and found sound. Damaged ones are set aside where an older
    one, or nothing, and the log from there on hold the same. Raises CorruptStorage where they do not, and
    changes nothing then."""
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
    """The snapshots without those that a sound newer one makes dispensable and whose header cannot be read.

    Raises CorruptStorage for the first checkpoint of a directory (0-0) where there is no newer one.
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
    """(log start, snapshots kept): a log that does not begin with 0 starts at a snapshot's end."""
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
