"""Opening the segments of a log: cleans up after a crash, refuses damage.

The last segment is read whole and its checksums are verified. The others were synced before their successor
had a name. So an index is trusted if the batches after its last entry end where the next segment begins. The
batches read here are kept for the replay that follows, so that they are read once.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import EpochCache, decode_epochs, encode_epochs
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    SegmentIndex,
    find_valid_batch,
    offset_of_name,
    scan,
)
from kraftd.log.settings import LogSettings
from kraftd.log.tail import Tail
from kraftd.wire.batch import Batch, BatchHeader, CorruptBatch

_REMEDY = (
    "Restore the file from a copy; or, with other voters up, move the directory aside, format it anew and "
    "let "
    "this node catch up from the leader"
)


_ANY_SIZE_BYTES = 1 << 62


class RecoveryReport:
    """The findings and repairs of an opening. notes are sentences for the process log, none if all was in
    order.
    """

    __slots__ = ("notes", "scanned_bytes", "truncated_bytes")

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.scanned_bytes = 0
        self.truncated_bytes = 0

    def __repr__(self) -> str:
        read, cut = self.scanned_bytes, self.truncated_bytes
        return f"<RecoveryReport {read} bytes read, {cut} cut off, {len(self.notes)} notes>"


class FirstPass:
    """The batches that the single pass over the log has read and checked, from `from_offset` on. A checkpoint
    holds the records before, the last of which is of `from_epoch`. Those before `committed` were committed
    and synced.

    control_batches are copies, oldest first. tail holds all batches if they are at most the settings'
    replay_bytes, else the newest tail_bytes of them.
    """

    def __init__(
        self, settings: LogSettings, from_offset: int = 0, from_epoch: int = -1, committed: int = 0
    ) -> None:
        self.from_offset = from_offset
        self.committed = committed
        self.from_epoch = from_epoch
        self.control_batches: list[bytes] = []
        self.tail = Tail(from_offset)
        self._limit_bytes = settings.replay_bytes
        self._tail_bytes = settings.tail_bytes

    def add(self, batch: Batch) -> None:
        header = batch.header
        if header.next_offset <= self.from_offset:
            return
        if header.is_control:
            self.control_batches.append(bytes(batch.view))
        self.tail.add(header.base_offset, header.next_offset, batch.position, batch.view)
        if self.tail.kept_bytes > self._limit_bytes:
            self._limit_bytes = self._tail_bytes
            self.tail.evict(self._limit_bytes, header.next_offset)

    def __repr__(self) -> str:
        return f"<FirstPass from {self.from_offset}, {len(self.control_batches)} control batches>"


class OpenedSegments:
    """The segments of a directory and the log end that follows from them; epochs agree with them. Without
    segments log_end is 0.
    """

    def __init__(self, disk: Disk, directory: str, settings: LogSettings, report: RecoveryReport) -> None:
        bases = sorted(
            offset
            for name in disk.list_names(directory)
            if name.endswith(LOG_SUFFIX) and (offset := offset_of_name(name)) is not None
        )
        self.segments = [Segment(directory, base, settings.index_interval_bytes) for base in bases]
        self.epochs = _load_epochs(disk, directory, report)
        self.epochs_on_disk = self.epochs.entries
        self.log_end = 0
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._report = report

    def load(self, seen: FirstPass) -> None:
        """Open all segments and their indexes. Raises CorruptStorage for damage other than a torn tail."""
        segments, epochs, report = self.segments, self.epochs, self._report
        if not segments:
            return
        # The epoch file has the epochs of deleted segments too; the segments' own epochs override it.
        known = epochs.epoch_of(segments[0].base_offset) is not None
        if not known:
            epochs.clear()
        log_end = 0
        for at, segment in enumerate(segments):
            segment.file = self._disk.open(segment.path())
            if at and segment.base_offset != log_end:
                raise CorruptStorage(
                    segments[at - 1].path(),
                    segments[at - 1].end_position,
                    log_end,
                    f"the log ends here, the next segment begins with {segment.base_offset}",
                    _REMEDY,
                )
            is_last = at == len(segments) - 1
            end = None if is_last else segments[at + 1].base_offset
            if end is not None and known and _trust_index(self._disk, segment, end, epochs, report):
                log_end = end
                if end > seen.from_offset:
                    _read_closed(segment, seen, report)
            else:
                proven = self._proven_epochs() if is_last else []
                log_end = _scan_segment(
                    self._disk, segment, epochs, report, seen, is_last=is_last, proven=proven
                )
        self.log_end = log_end

    def _proven_epochs(self) -> list[tuple[int, int]]:
        """The epochs on the disk whose first records were synced.

        If a log does not begin at offset 0, its first epoch is noted with the log's first offset, which
        proves no record.
        """
        return [one for at, one in enumerate(self.epochs_on_disk) if at or not one[1]]

    @property
    def log_start(self) -> int | None:
        """Where the first segment begins."""
        return self.segments[0].base_offset if self.segments else None

    def settle(self, log_end: int) -> int:
        """Make a first segment there if there is none, and cut the epochs. Returns the first offset."""
        if not self.segments:
            self.log_end = log_end
            self.epochs.clear()
            self.segments.append(Segment(self._directory, log_end, self._settings.index_interval_bytes))
            self.segments[0].create(self._disk)
        self.epochs.truncate_from_end(self.log_end)
        self.epochs.truncate_from_start(self.segments[0].base_offset)
        return self.segments[0].base_offset

    def write_epochs(self) -> None:
        """Write the epochs if they are not those on disk."""
        if self.epochs.entries == self.epochs_on_disk:
            return
        if self.segments[-1].file is not None:
            self.segments[-1].file.sync()  # the epoch file proves that it is synced
        write_atomically(
            self._disk, f"{self._directory}/{EPOCHS_FILE_NAME}", encode_epochs(self.epochs.entries)
        )

    def __repr__(self) -> str:
        return f"<OpenedSegments {len(self.segments)} to {self.log_end}>"


def sweep_segments(disk: Disk, directory: str, report: RecoveryReport) -> list[str]:
    """Finish interrupted swaps of segments; remove the leftovers of interrupted writes and deletions. Returns
    the names of the files that are there then.
    """
    names = disk.list_names(directory)
    if any(name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX)) for name in names):
        _finish_swaps(disk, directory, names, report)
        names = disk.list_names(directory)
    logs = {name[:20] for name in names if name.endswith(LOG_SUFFIX)}
    kept = []
    for name in names:
        of_segment = offset_of_name(name) is not None
        is_orphan = name.endswith((".index", ".timeindex", ".txnindex")) and name[:20] not in logs
        is_left = is_orphan or name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX))
        if name.endswith(".tmp") or (of_segment and is_left):
            remove_leftover(disk, directory, name, report)
        else:
            kept.append(name)
    return kept


def _finish_swaps(disk: Disk, directory: str, names: list[str], report: RecoveryReport) -> None:
    """Kafka's swap: new files are complete as `.cleaned`, get `.swap`, replace the old ones and lose it.

    While one is `.cleaned`, those behind it may lack some. The old files that the others replace go first.
    """
    of_segments = {name: offset for name in names if (offset := offset_of_name(name)) is not None}
    cleaned = (offset for name, offset in of_segments.items() if name.endswith(CLEANED_SUFFIX))
    unfinished = min(cleaned, default=None)
    swaps = []
    for name, offset in of_segments.items():
        if name.endswith(SWAP_SUFFIX):
            if unfinished is not None and offset >= unfinished:
                remove_leftover(disk, directory, name, report)
            else:
                swaps.append(name)
    first, end = 1 << 63, -1
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            first = min(first, of_segments[name])
            end = max(end, _end_of_file(disk, f"{directory}/{name}", of_segments[name]))
    for name, offset in of_segments.items():
        if first <= offset < end and not name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX)):
            remove_leftover(disk, directory, name, report)
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
        report.notes.append(f"{name} was renamed: a swap had been interrupted")


def _end_of_file(disk: Disk, path: str, base_offset: int) -> int:
    """The offset after the last whole batch of a segment's file."""
    file = disk.open(path)
    end = base_offset
    try:
        for header, _, _ in scan(file, 0, file.size_bytes(), verify=False):
            end = header.next_offset
    except CorruptBatch:
        pass
    finally:
        file.close()
    return end


def remove_leftover(disk: Disk, directory: str, name: str, report: RecoveryReport) -> None:
    """Delete a leftover of an interrupted write or deletion, and add a note."""
    disk.remove(f"{directory}/{name}")
    report.notes.append(f"{name} was removed: it was left over from an interrupted write or delete")


def _load_epochs(disk: Disk, directory: str, report: RecoveryReport) -> EpochCache:
    try:
        entries = decode_epochs(disk.read_bytes(f"{directory}/{EPOCHS_FILE_NAME}"))
    except FileNotFoundError:
        return EpochCache()
    if entries is None:
        report.notes.append(f"{EPOCHS_FILE_NAME} is no such file and is made anew from the log")
        return EpochCache()
    return EpochCache(entries)


def _trust_index(disk: Disk, segment: Segment, end: int, epochs: EpochCache, report: RecoveryReport) -> bool:
    """Trust a closed segment's index, if the batches after its last entry lead to end."""
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
    disk: Disk,
    segment: Segment,
    epochs: EpochCache,
    report: RecoveryReport,
    seen: FirstPass,
    *,
    is_last: bool,
    proven: Sequence[tuple[int, int]],
) -> int:
    """Read a segment whole, index it, and cut a torn tail off the last one; returns its end offset.

    proven: the epochs on the disk, each with the offset of a record that was synced before it was written.
    """
    file = segment.file
    assert file is not None
    size_bytes = file.size_bytes()
    expected, epoch = segment.base_offset, -1
    try:
        for batch in scan(file, 0, size_bytes):
            header = batch.header
            _check_continues(segment, batch, expected, epoch)
            epoch = header.leader_epoch
            latest = epochs.latest
            if latest is None or header.leader_epoch > latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            segment.add(header)
            seen.add(batch)
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
        _check_nothing_is_cut(disk, segment, expected, error.position, seen, report)
        _check_no_epoch_is_cut(segment, expected, error.position, seen, proven)
        cut_bytes = size_bytes - error.position
        report.truncated_bytes += cut_bytes
        report.notes.append(
            f"{segment.path()} was cut at byte {error.position} (offset {expected}): the {cut_bytes} bytes "
            f"behind it are a write that a crash had interrupted ({error.reason})"
        )
        file.truncate(error.position)
        file.sync()
    else:
        if is_last:
            _check_nothing_is_cut(disk, segment, expected, size_bytes, seen, report)
            _check_no_epoch_is_cut(segment, expected, size_bytes, seen, proven)
    report.scanned_bytes += size_bytes
    if not is_last:
        segment.write_indexes(disk)
    return expected


def _check_no_epoch_is_cut(
    segment: Segment, log_end: int, position: int, seen: FirstPass, proven: Sequence[tuple[int, int]]
) -> None:
    """Compare the end of the last segment with the epochs on the disk. Each was written after a sync of its
    first record. Raises CorruptStorage if neither the log nor a checkpoint has the last epoch's first record.
    """
    epoch, offset = proven[-1] if proven else (-1, -1)
    if offset >= log_end and epoch > seen.from_epoch:
        raise CorruptStorage(
            segment.path(),
            position,
            log_end,
            f"offset {log_end} is where the log ends, and {EPOCHS_FILE_NAME} knows of epoch {epoch} from "
            f"offset {offset} on: {offset + 1 - log_end} records or more that were synced are gone",
            f"{_REMEDY}. If a power failure stopped Apache Kafka just as it began that epoch, nothing is "
            f"gone: then move {EPOCHS_FILE_NAME} aside",
        )


def _check_nothing_is_cut(
    disk: Disk, segment: Segment, log_end: int, position: int, seen: FirstPass, report: RecoveryReport
) -> None:
    """Compare the end of the last segment with its index files.

    Records below the high watermark that was written to the disk must be there too.

    Index files are written whole after a sync of the log, at a stop and when a segment is closed. So records
    that they name and the log lacks are lost, unless a checkpoint holds them. Index files of a killed Kafka
    are padded with zeros and prove nothing: their entries are only reported. Raises CorruptStorage.
    """
    if max(log_end, seen.from_offset) < seen.committed:
        raise CorruptStorage(
            segment.path(),
            position,
            log_end,
            f"offset {log_end} is where the log ends, and the high watermark was {seen.committed}: "
            f"{seen.committed - log_end} committed records are gone",
            _REMEDY,
        )
    files = []
    for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        try:
            files.append(disk.read_bytes(segment.path(suffix)))
        except FileNotFoundError:
            files.append(b"")
    index = SegmentIndex.load(segment.base_offset, files[0], files[1], _ANY_SIZE_BYTES)
    last = None if index is None else index.last_known_offset
    if index is None or last is None or last < max(log_end, seen.from_offset):
        return
    lacking = f"offset {log_end} is where the log ends, and its index knows of offset {last}"
    if [index.offset_index_bytes(), index.time_index_bytes()] == files:
        raise CorruptStorage(
            segment.path(),
            position,
            log_end,
            f"{lacking}: {last + 1 - log_end} records or more that were synced are gone",
            _REMEDY,
        )
    report.notes.append(
        f"{segment.path()}: {lacking}. Unless a power failure left it so, {last + 1 - log_end} records or "
        "more are gone"
    )


def _read_closed(segment: Segment, seen: FirstPass, report: RecoveryReport) -> None:
    """Read the part of a closed segment that the replay needs. Raises CorruptStorage."""
    file = segment.file
    assert file is not None
    start = segment.index.lookup(max(seen.from_offset, segment.base_offset))
    expected, epoch = None, -1
    try:
        for batch in scan(file, start, segment.end_position):
            _check_continues(segment, batch, expected, epoch)
            expected, epoch = batch.header.next_offset, batch.header.leader_epoch
            seen.add(batch)
    except CorruptBatch as error:
        raise CorruptStorage(segment.path(), error.position, expected, error.reason, _REMEDY) from None
    report.scanned_bytes += segment.end_position - start


def _check_continues(segment: Segment, batch: Batch, expected: int | None, epoch: int) -> None:
    """Raise CorruptStorage for a batch that does not continue those before it: no leader writes one of an
    earlier epoch behind a later one's.
    """
    header = batch.header
    if expected is not None and header.base_offset != expected:
        found = f"a batch of offset {header.base_offset} is here"
    elif header.leader_epoch < epoch:
        found = f"a batch of epoch {header.leader_epoch} is behind one of epoch {epoch}"
    else:
        return
    raise CorruptStorage(
        segment.path(), batch.position, header.base_offset if expected is None else expected, found, _REMEDY
    )
