"""A segment: one `.log` file of whole batches, its sparse index, and the walk over its batches.

Index entries are Kafka's: one for the first batch that begins more than index_interval_bytes after the last
entry. `.index` holds (last offset of the batch, its position), `.timeindex` (largest timestamp so far, its
offset). Offsets are relative to the segment's first.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct

from kraftd.log.disk import Disk, File, ReadableFile
from kraftd.wire.batch import HEADER_BYTES, Batch, BatchHeader, CorruptBatch, iter_batches, read_batch

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"  # of a file that a cleaning writes
SWAP_SUFFIX = ".swap"  # of one that is complete and takes the place of others
SUFFIXES = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
)

INDEX_INTERVAL_BYTES = 4096
MAX_RELATIVE_OFFSET = (1 << 31) - 1
SCAN_CHUNK_BYTES = 1 << 20

_TIME_ENTRY = Struct(">qI")


def segment_name(base_offset: int, suffix: str) -> str:
    """`00000000000000000042.log` and its companions."""
    return f"{base_offset:020d}{suffix}"


def offset_of_name(name: str) -> int | None:
    """The offset in the name of a segment's file; None for every other file."""
    digits = name[:20]
    return int(digits) if digits.isdecimal() and len(digits) == 20 and name[20:21] == "." else None


class SegmentIndex:
    """The sparse index of one segment, in memory: where the search for an offset begins.

    from_position counts as the position of an entry, last_time_ms as the timestamp of one: the entries before
    them are in the two files only.
    """

    __slots__ = (
        "_interval_bytes",
        "_last_position",
        "_last_time_ms",
        "_positions",
        "base_offset",
        "max_time",
        "offsets",
        "times",
    )

    def __init__(
        self,
        base_offset: int,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
        from_position: int = 0,
        last_time_ms: int = -1,
    ) -> None:
        self.base_offset = base_offset
        self.max_time = (-1, base_offset)  # largest timestamp so far and the last offset of its batch
        self._interval_bytes = interval_bytes
        self._last_position = from_position
        self._last_time_ms = last_time_ms
        self.offsets = array("I")
        self._positions = array("I")
        self.times: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<SegmentIndex of {self.base_offset}, {len(self.offsets)} entries>"

    def note(self, last_offset: int, max_timestamp_ms: int, position: int) -> None:
        """Add the next batch, which begins at position; it gets an entry if one is due."""
        if max_timestamp_ms > self.max_time[0]:
            self.max_time = (max_timestamp_ms, last_offset)
        if position - self._last_position > self._interval_bytes:
            self.offsets.append(last_offset - self.base_offset)
            self._positions.append(position)
            self._last_position = position
            if self.max_time[0] > self._last_time_ms:
                self.note_max_time()

    def note_max_time(self) -> None:
        """Add an entry for the largest timestamp, unless the last one has it."""
        if self.max_time[0] > self._last_time_ms:
            self.times.append(self.max_time)
            self._last_time_ms = self.max_time[0]

    def entries_bytes(self) -> tuple[bytes, bytes]:
        """The entries as content for the two files, without the largest timestamp if it is none of them."""
        return self.offset_index_bytes(), _time_entries(self.times, self.base_offset)

    def forget_entries(self) -> None:
        """Forget the entries, which the two files have from now on."""
        self.offsets, self._positions, self.times = array("I"), array("I"), []

    @property
    def counts(self) -> tuple[int, int]:
        """The number of entries in memory: of offsets, of times."""
        return len(self.offsets), len(self.times)

    def place(self, offset: int) -> tuple[int, int] | None:
        """(last offset of its batch, position) of the last entry in memory at or below offset."""
        at = bisect_right(self.offsets, offset - self.base_offset) - 1
        return (self.offsets[at] + self.base_offset, self._positions[at]) if at >= 0 else None

    def time_before(self, timestamp_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the last entry in memory that is older than timestamp_ms."""
        at = bisect_left(self.times, timestamp_ms, key=lambda entry: entry[0]) - 1
        return self.times[at] if at >= 0 else None

    def lookup(self, offset: int) -> int:
        """The position of a batch at or before the one that holds offset."""
        at = bisect_right(self.offsets, offset - self.base_offset) - 1
        return self._positions[at] if at >= 0 else 0

    def offset_before(self, timestamp_ms: int) -> int:
        """The last known offset before which every record is older than timestamp_ms."""
        at = bisect_left(self.times, timestamp_ms, key=lambda entry: entry[0]) - 1
        return self.times[at][1] + 1 if at >= 0 else self.base_offset

    def saw(self, header: BatchHeader) -> None:
        """Account for the timestamp of a batch that no entry covers."""
        if header.max_timestamp_ms > self.max_time[0]:
            self.max_time = (header.max_timestamp_ms, header.last_offset)

    def position_below(self, start: int, stop: int) -> int:
        """The last known beginning of a batch from start to stop; start if there is none."""
        at = bisect_right(self._positions, stop) - 1
        return max(start, self._positions[at]) if at >= 0 else start

    @property
    def last_entry(self) -> tuple[int, int] | None:
        """(last offset of the batch, position) of the last entry."""
        return (self.offsets[-1] + self.base_offset, self._positions[-1]) if self.offsets else None

    @property
    def last_known_offset(self) -> int | None:
        """The last offset that an entry names, of either index."""
        last = self.offsets[-1] + self.base_offset if self.offsets else None
        return last if self.max_time[0] < 0 else max(self.max_time[1], -1 if last is None else last)

    def truncate(self, end_offset: int, position: int) -> bool:
        """Forget the batches from position on; the first of them begins at end_offset.

        Returns whether the remaining batches may hold a larger timestamp than the known one.
        """
        keep = bisect_left(self._positions, position)
        del self.offsets[keep:], self._positions[keep:]
        while self.times and self.times[-1][1] >= end_offset:
            self.times.pop()
        self._last_position = self._positions[-1] if keep else 0
        self._last_time_ms = self.times[-1][0] if self.times else -1
        if self.max_time[1] >= end_offset:
            self.max_time = self.times[-1] if self.times else (-1, self.base_offset)
            return position > 0
        return False

    def offset_index_bytes(self) -> bytes:
        """Content of the `.index` file."""
        both = array("I", bytes(8 * len(self.offsets)))
        both[0::2] = self.offsets
        both[1::2] = self._positions
        if sys.byteorder == "little":
            both.byteswap()
        return both.tobytes()

    def time_index_bytes(self) -> bytes:
        """Content of the `.timeindex` file; it ends with the largest timestamp, entry due or not."""
        times = list(self.times)
        if self.max_time[0] > self._last_time_ms:
            times.append(self.max_time)
        return _time_entries(times, self.base_offset)

    @classmethod
    def load(
        cls, base_offset: int, offset_index: bytes, time_index: bytes, log_bytes: int
    ) -> SegmentIndex | None:
        """Read the index of a closed segment from its two files; None if they contradict each other or the
        log.

        Kafka maps ten MiB of zeros while it writes; zeros after the last entry are no entries.
        """
        if len(offset_index) % 8 or len(time_index) % 12:
            return None
        index = cls(base_offset)
        previous_offset, previous_position = -1, 0
        both = array("I", offset_index)
        if sys.byteorder == "little":
            both.byteswap()
        for at in range(0, len(both), 2):
            offset, position = both[at], both[at + 1]
            if offset == 0 and position == 0:
                break
            if offset <= previous_offset or not previous_position < position < log_bytes:
                return None
            index.offsets.append(offset)
            index._positions.append(position)
            previous_offset, previous_position = offset, position
        index._last_position = previous_position
        for at in range(0, len(time_index), 12):
            time, relative = _TIME_ENTRY.unpack_from(time_index, at)
            if time == 0 and relative == 0 and at:
                break
            if index.times and (time <= index.times[-1][0] or relative + base_offset < index.times[-1][1]):
                return None
            index.times.append((time, relative + base_offset))
        if index.times:
            index.max_time = index.times[-1]
            index._last_time_ms = index.max_time[0]
        return index


def _time_entries(times: list[tuple[int, int]], base_offset: int) -> bytes:
    """Entries of a `.timeindex` file."""
    return b"".join([_TIME_ENTRY.pack(time, offset - base_offset) for time, offset in times])


class Segment:
    """One segment. end_position counts appended bytes, which may not all be in its file yet."""

    __slots__ = ("base_offset", "directory", "end_position", "file", "first_timestamp_ms", "index")

    def __init__(self, directory: str, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.end_position = 0
        self.first_timestamp_ms: int | None = None  # of the first batch; rolling by time counts from it
        self.index = SegmentIndex(base_offset, interval_bytes)
        self.file: File | None = None  # None until the syncing thread has made it

    def __repr__(self) -> str:
        return f"<Segment {self.base_offset}, {self.end_position} bytes>"

    def path(self, suffix: str = LOG_SUFFIX) -> str:
        return f"{self.directory}/{segment_name(self.base_offset, suffix)}"

    @property
    def opened(self) -> File:
        """Its file, which earlier work has made."""
        assert self.file is not None
        return self.file

    def add(self, header: BatchHeader) -> int:
        """Account for the next batch; returns its position."""
        position = self.end_position
        if position == 0:
            self.first_timestamp_ms = header.max_timestamp_ms
        self.index.note(header.last_offset, header.max_timestamp_ms, position)
        self.end_position = position + header.size_bytes
        return position

    def is_full_for(
        self, size_bytes: int, last_offset: int, timestamp_ms: int, segment_bytes: int, segment_ms: int
    ) -> bool:
        """Return whether an append of that size, last offset and timestamp begins a new segment. An empty
        segment is never full.
        """
        if self.end_position == 0:
            return False
        waited_ms = timestamp_ms - self.first_timestamp_ms if self.first_timestamp_ms is not None else 0
        return (
            self.end_position > segment_bytes - size_bytes
            or waited_ms > segment_ms
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        )

    # --- for the syncing thread ---

    def create(self, disk: Disk) -> None:
        """Make the file and its empty indexes, with durable names."""
        self.file = disk.open(self.path(), create=True)
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            disk.open(self.path(suffix), create=True).close()
        disk.sync_directory(self.directory)

    def write_indexes(self, disk: Disk) -> None:
        """Write both index files. They are not synced: they are checked when read and can be made anew."""
        contents = (
            (OFFSET_INDEX_SUFFIX, self.index.offset_index_bytes()),
            (TIME_INDEX_SUFFIX, self.index.time_index_bytes()),
        )
        for suffix, content in contents:
            file = disk.open(self.path(suffix), create=True)
            file.write(0, content)
            file.truncate(len(content))
            file.close()

    def remove_indexes(self, disk: Disk) -> None:
        """Delete both index files, which can be made anew."""
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            disk.remove(self.path(suffix))

    def remove(self, disk: Disk) -> None:
        """Delete the files, the log first: indexes without a log are swept at the next start."""
        for suffix in SUFFIXES:
            disk.remove(self.path(suffix))


def scan(
    file: ReadableFile, start: int, end: int, *, verify: bool = True, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> Iterator[Batch]:
    """The batches of a file from start to end, read in chunks. Positions are those in the file.

    Raises CorruptBatch, also with the position in the file; truncated if a batch runs past end.
    """
    position = start
    wanted = chunk_bytes
    while position < end:
        data = memoryview(file.read(position, min(wanted, end - position)))
        at = 0
        while at < len(data):
            try:
                batch = read_batch(data, at, verify=verify)
            except CorruptBatch as error:
                if error.truncated and position + len(data) < end and (at or len(data) >= HEADER_BYTES):
                    break
                raise CorruptBatch(error.reason, position + at, truncated=error.truncated) from None
            yield Batch(batch.header, batch.view, position + at)
            at += len(batch.view)
        if at == 0:  # one batch is longer than the chunk
            wanted = int.from_bytes(data[8:12], "big", signed=True) + 12
            if position + wanted > end:
                raise CorruptBatch(
                    f"{wanted} bytes long, {end - position} are left", position, truncated=True
                )
        else:
            wanted = chunk_bytes
        position += at


def check_run(data: bytes, offset: int) -> None:
    """Raises CorruptBatch unless data is a sequence of sound batches that begins with that of offset."""
    expected = None
    for batch in iter_batches(data):
        header = batch.header
        fits = header.base_offset == expected if expected is not None else header.base_offset <= offset
        if not fits or header.next_offset <= offset:
            wanted = offset if expected is None else expected
            raise CorruptBatch(f"offset {header.base_offset} is where {wanted} belongs", batch.position)
        expected = header.next_offset


def find_valid_batch(file: ReadableFile, start: int, end: int, from_offset: int) -> int | None:
    """The position, from start on, of a batch with a right checksum and an offset of at least from_offset.

    This distinguishes a torn tail, after which there is none, from damage in the middle. It tries every byte,
    since nothing marks the beginning of a batch.
    """
    position = start
    window = 1 << 22
    while position + HEADER_BYTES <= end:
        data = file.read(position, min(window, end - position))
        at = data.find(b"\x02", 16) - 16
        while at >= 0:
            base_offset = int.from_bytes(data[at : at + 8], "big", signed=True)
            length_bytes = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
            if (
                from_offset <= base_offset <= from_offset + (end - start)
                and HEADER_BYTES - 12 <= length_bytes <= end - position - at - 12
                and _is_valid(file.read(position + at, length_bytes + 12))
            ):
                return position + at
            at = data.find(b"\x02", at + 17) - 16
        if len(data) < window:
            break
        position += len(data) - HEADER_BYTES
    return None


def _is_valid(data: bytes) -> bool:
    try:
        read_batch(data)
    except CorruptBatch:
        return False
    return True
