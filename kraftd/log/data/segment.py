"""A segment of an ordinary partition: what must be in memory of it while its partition is idle, and the rest
when it is asked for.

Index entries go to their files a few hundred at a time and are searched there. Nothing of this is durable
before the next flush, and all of it can be made anew from the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kraftd.log.data.index_files import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    count_of_offsets_to,
    count_of_time_offsets_before,
    count_of_times_before,
    offset_entry,
    time_entry,
)
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.disk import File
from kraftd.log.errors import DiskFull
from kraftd.log.segment import (
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentIndex,
    scan,
    segment_name,
)
from kraftd.wire.batch import HEADER_BYTES, LENGTH_END, BatchHeader, CorruptBatch, parse_header

SPILL_ENTRIES = 256  # so many entries are in memory before they are written

Opener = Callable[[str], File]
"""Opens the file of a path, or returns the open one. Raises FileNotFoundError, StorageError."""


class Place(Protocol):
    """Where the files of a segment are: a log. Appends ask only when they need them."""

    @property
    def directory(self) -> str: ...
    @property
    def opened(self) -> Opener: ...


class DataSegment:
    """One segment. directory is passed to what touches its files, since all segments of a partition share it.

    index: the entries that are not in the files yet; None of a segment that nothing is appended to. -1 of
    offset_entries: the files were not looked at yet. has_aborted: False once it is known that it has no
    transaction index.
    """

    __slots__ = (
        "_first_timestamp_ms",
        "_last_place",
        "_max_time",
        "base_offset",
        "created_ms",
        "end_position",
        "has_aborted",
        "index",
        "jitter_ms",
        "offset_entries",
        "time_entries",
    )

    def __init__(
        self, base_offset: int, created_ms: int, *, end_position: int = 0, jitter_ms: int = 0
    ) -> None:
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.end_position = end_position
        self.jitter_ms = jitter_ms
        self.index: SegmentIndex | None = None
        self.offset_entries = -1
        self.time_entries = -1
        self.has_aborted = True
        self._first_timestamp_ms: int | None = None
        self._max_time: tuple[int, int] | None = None
        # What was found last in the file, for a fetch asks thrice; or where the last read ended, for most go
        # on from there. The offset, how many entries there were, the place.
        self._last_place: tuple[int, int, tuple[int | None, int]] | None = None

    def __repr__(self) -> str:
        return f"<DataSegment {self.base_offset}, {self.end_position} bytes>"

    def path(self, directory: str, suffix: str = LOG_SUFFIX) -> str:
        return f"{directory}/{segment_name(self.base_offset, suffix)}"

    # --- appends ---

    def is_full_for(
        self,
        size_bytes: int,
        last_offset: int,
        timestamp_ms: int,
        now_ms: int,
        settings: DataLogSettings,
        place: Place,
        entry_count: int = 0,
    ) -> bool:
        """Return whether an append of that size, last offset and largest timestamp begins a new segment.

        With entry_count: or one behind it, once so many index entries are added.
        """
        if self.end_position > settings.segment_bytes - size_bytes:
            return True
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not self.end_position:
            return False
        first_ms = self._first_timestamp_ms
        if first_ms is None:
            try:
                first_ms = self.first_timestamp_ms(place.directory, place.opened)
            except CorruptBatch:
                return True  # a segment that is damaged takes no further records
        waited_ms = timestamp_ms - first_ms if first_ms >= 0 else now_ms - self.created_ms
        if waited_ms > settings.segment_ms - self.jitter_ms:
            return True
        if self.offset_entries < 0:
            self.count_entries(place.directory, place.opened)
        index = self.index
        offsets, times = (0, 0) if index is None else (len(index.offsets), len(index.times))
        # The last place of the time index is for the entry that is added when the segment is closed.
        return (
            self.offset_entries + offsets + entry_count >= settings.segment_index_bytes // OFFSET_ENTRY.size
            or self.time_entries + times + entry_count >= settings.segment_index_bytes // TIME_ENTRY.size - 1
        )

    def add(self, batches: Sequence[BatchHeader], index: SegmentIndex) -> None:
        """Account for batches at the end; index is `writable_index`'s."""
        position = self.end_position
        if not position:
            self._first_timestamp_ms = batches[0].max_timestamp_ms
        for batch in batches:
            index.note(batch.base_offset + batch.last_offset_delta, batch.max_timestamp_ms, position)
            position += batch.length_bytes + LENGTH_END
        self.end_position = position

    def writable_index(self, interval_bytes: int, directory: str, opened: Opener) -> SegmentIndex:
        """The index of a segment that is appended to. After an opening the interval begins at its end."""
        if self.index is None:
            largest = self.max_time(directory, opened)
            last_ms = self._last_time_entry(directory, opened)[0]
            self.index = SegmentIndex(self.base_offset, interval_bytes, self.end_position, last_ms)
            self.index.max_time = largest
        return self.index

    def spill(self, directory: str, opened: Opener) -> None:
        """Write the entries in memory to the two files; on a full disk they stay. Raises StorageError."""
        index = self.index
        if index is None or index.counts == (0, 0):
            return
        self.count_entries(directory, opened)
        added = index.counts
        offsets, times = index.entries_bytes()
        try:
            if offsets:
                position = self.offset_entries * OFFSET_ENTRY.size
                opened(self.path(directory, OFFSET_INDEX_SUFFIX)).write(position, offsets)
            if times:
                position = self.time_entries * TIME_ENTRY.size
                opened(self.path(directory, TIME_INDEX_SUFFIX)).write(position, times)
        except DiskFull:
            return
        self.offset_entries += added[0]
        self.time_entries += added[1]
        index.forget_entries()

    def finish(self, directory: str, opened: Opener) -> None:
        """Write the index of a segment that gets a successor, or that is closed. Raises StorageError."""
        index = self.index
        if index is None:
            return
        index.note_max_time()
        self.spill(directory, opened)
        if index.counts == (0, 0):
            self._max_time, self.index = index.max_time, None

    # --- lookups ---

    def count_entries(self, directory: str, opened: Opener) -> None:
        """Learn how many entries the files have."""
        if self.offset_entries < 0:
            offsets = opened(self.path(directory, OFFSET_INDEX_SUFFIX)).size_bytes()
            times = opened(self.path(directory, TIME_INDEX_SUFFIX)).size_bytes()
            self.offset_entries, self.time_entries = offsets // OFFSET_ENTRY.size, times // TIME_ENTRY.size

    def set_entries(self, offsets: int, times: int, max_time: tuple[int, int]) -> None:
        """Note what both files have, after they were written by a recovery or cut."""
        self.offset_entries, self.time_entries, self._last_place = offsets, times, None
        self._max_time = max_time if times else None

    def place(self, offset: int, directory: str, opened: Opener) -> tuple[int | None, int]:
        """(last offset of its batch, position) of the last entry at or below offset, else (None, 0).

        (None, position) if the batch there is the one that holds the offset or follows it: see `note_end`.
        """
        last = self._last_place
        if last is not None and last[0] == offset and last[1] == self.offset_entries:
            return last[2]
        found = None if self.index is None else self.index.place(offset)
        if found is not None:
            return found
        self.count_entries(directory, opened)
        entries = self.offset_entries
        if not entries:
            return None, 0
        file = opened(self.path(directory, OFFSET_INDEX_SUFFIX))
        place: tuple[int | None, int] = None, 0
        if count := count_of_offsets_to(file, entries, offset - self.base_offset):
            relative, position = offset_entry(file, count - 1)
            place = relative + self.base_offset, position
        self._last_place = offset, entries, place
        return place

    def note_end(self, next_offset: int, position: int) -> None:
        """Note where sound batches that were read end, and the offset after them. Only for the thread that
        truncates.
        """
        if position < self.end_position:
            self._last_place = next_offset, self.offset_entries, (None, position)

    def forget_place(self) -> None:
        """Let the next lookup search the index."""
        self._last_place = None

    def first_timestamp_ms(self, directory: str, opened: Opener) -> int:
        """The largest timestamp of the first batch; -1 of an empty segment. Raises CorruptBatch."""
        if self._first_timestamp_ms is None:
            if not self.end_position:
                return -1
            head = opened(self.path(directory)).read(0, HEADER_BYTES)
            self._first_timestamp_ms = parse_header(head, alone=True).max_timestamp_ms
        return self._first_timestamp_ms

    def max_time(self, directory: str, opened: Opener) -> tuple[int, int]:
        """(largest timestamp, last offset of its batch); a timestamp of -1 if there is none."""
        if self.index is not None:
            return self.index.max_time
        if self._max_time is not None:
            return self._max_time
        found = self._last_time_entry(directory, opened)
        if self.time_entries:  # most of very many segments are empty: a tuple for each would be memory
            self._max_time = found
        return found

    def offset_before(self, timestamp_ms: int, directory: str, opened: Opener) -> int:
        """An offset before which every record of the segment is older than timestamp_ms."""
        found = None if self.index is None else self.index.time_before(timestamp_ms)
        if found is not None:
            return found[1]
        self.count_entries(directory, opened)
        if not self.time_entries:
            return self.base_offset
        file = opened(self.path(directory, TIME_INDEX_SUFFIX))
        count = count_of_times_before(file, self.time_entries, timestamp_ms)
        return time_entry(file, count - 1)[1] + self.base_offset if count else self.base_offset

    def _last_time_entry(self, directory: str, opened: Opener) -> tuple[int, int]:
        self.count_entries(directory, opened)
        if not self.time_entries:
            return -1, self.base_offset
        file = opened(self.path(directory, TIME_INDEX_SUFFIX))
        timestamp_ms, relative = time_entry(file, self.time_entries - 1)
        return timestamp_ms, relative + self.base_offset

    # --- truncation ---

    def truncate(
        self, end_offset: int, position: int, now_ms: int, interval_bytes: int, directory: str, opened: Opener
    ) -> None:
        """Cut the files before the batch at position, whose records and all later ones are at least at
        end_offset. Raises StorageError, CorruptBatch.
        """
        had_times = self.max_time(directory, opened)[0] >= 0
        self.spill(directory, opened)
        self.index = None
        self.count_entries(directory, opened)
        relative = end_offset - self.base_offset
        offsets = opened(self.path(directory, OFFSET_INDEX_SUFFIX))
        times = opened(self.path(directory, TIME_INDEX_SUFFIX))
        kept = count_of_offsets_to(offsets, self.offset_entries, relative - 1)
        kept_times = count_of_time_offsets_before(times, self.time_entries, relative)
        offsets.truncate(kept * OFFSET_ENTRY.size)
        times.truncate(kept_times * TIME_ENTRY.size)
        opened(self.path(directory)).truncate(position)
        self.end_position = position
        self.offset_entries, self.time_entries, self._max_time = kept, kept_times, None
        self._last_place = None
        if not position:
            self.created_ms, self._first_timestamp_ms = now_ms, None
        index = self.writable_index(interval_bytes, directory, opened)
        if had_times:
            start = self.place(index.max_time[1], directory, opened)[1]
            for header, _, _ in scan(opened(self.path(directory)), start, position, verify=False):
                index.saw(header)


def last_header(segment: DataSegment, directory: str, opened: Opener) -> BatchHeader | None:
    """The header of a segment's last batch; None without one. Reads from the last index entry on.

    Raises CorruptBatch if the batches there do not lead to the end of the file.
    """
    segment.count_entries(directory, opened)
    start = 0
    if segment.offset_entries:
        file = opened(segment.path(directory, OFFSET_INDEX_SUFFIX))
        start = offset_entry(file, segment.offset_entries - 1)[1]
    found = None
    for header, _, _ in scan(
        opened(segment.path(directory)), start, segment.end_position, verify=False, chunk_bytes=1 << 14
    ):
        found = header
    return found
