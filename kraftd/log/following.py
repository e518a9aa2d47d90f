"""Reads the batches of segments that another process may be writing, from an offset on, in repeated polls.

Nothing is locked, recovered or changed. A batch that is not complete yet is read at the next poll.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from kraftd.log.disk import Disk, File
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import LOG_SUFFIX, find_valid_batch, offset_of_name, scan, segment_name
from kraftd.wire.batch import HEADER_BYTES, Batch, BatchHeader, CorruptBatch, parse_header

_REMEDY = "See kraftd dump --verify for what else is damaged"


class LogTruncated(Exception):
    """The log now ends before the position of the reader, or its records there have changed: read it again.

    offset is the first one whose record may have changed.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(f"the log was truncated at or before offset {offset}")
        self.offset = offset


class SegmentReader:
    """Reads the batches of a partition's directory, or of one file, in order; next_offset comes next."""

    def __init__(self, disk: Disk, directory: str, start: int, *, file: str | None = None) -> None:
        self.next_offset = start
        self.position = 0  # in the current segment
        self._disk = disk
        self._directory = directory
        self._only = file
        self._base: int | None = None
        self._file: File | None = None
        self._last: tuple[int, BatchHeader] | None = None  # position and header of the batch before

    def __repr__(self) -> str:
        return f"<SegmentReader {self._only or self._directory} at {self.next_offset}>"

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def batches(self) -> Iterator[Batch]:
        """The batches that are whole now, their checksums verified.

        Raises LogTruncated, and CorruptStorage for damage, for a gap, and if no segment holds the offset.
        """
        while True:
            if self._file is None:
                self._open(self.next_offset)
            self._check_unchanged()
            yield from self._rest_of_segment()
            if self._only is not None or not self._next_segment():
                return

    def _bases(self) -> list[int]:
        return sorted(
            offset
            for name in self._disk.list_names(self._directory)
            if name.endswith(LOG_SUFFIX) and (offset := offset_of_name(name)) is not None
        )

    def _path(self) -> str:
        if self._only is not None:
            return self._only
        assert self._base is not None
        return f"{self._directory}/{segment_name(self._base, LOG_SUFFIX)}"

    def _open(self, offset: int) -> None:
        if self._only is None:
            bases = self._bases()
            at = bisect_right(bases, offset) - 1
            if at < 0:
                raise CorruptStorage(self._directory, 0, offset, "no segment holds this offset", _REMEDY)
            self._base = bases[at]
        self._file = self._disk.open(self._path())
        self.position, self._last = 0, None

    def _check_unchanged(self) -> None:
        """Raise LogTruncated if the batch that was read last is gone: the log was truncated, and perhaps
        written anew.
        """
        assert self._file is not None
        if self._last is None:
            return
        position, header = self._last
        data = self._file.read(position, header.size_bytes)
        try:
            unchanged = parse_header(data) == header
        except CorruptBatch:
            unchanged = False
        if not unchanged:
            raise LogTruncated(header.base_offset)

    def _rest_of_segment(self) -> Iterator[Batch]:
        file = self._file
        assert file is not None
        end = file.size_bytes()
        try:
            for batch in scan(file, self.position, end):
                header = batch.header
                position = batch.position
                self.position = position + header.size_bytes
                if header.next_offset <= self.next_offset:
                    self._last = (position, header)
                    continue
                if header.base_offset > self.next_offset:
                    reason = f"offset {header.base_offset} is where {self.next_offset} belongs"
                    raise CorruptStorage(self._path(), position, self.next_offset, reason, _REMEDY)
                self._last = (position, header)
                self.next_offset = header.next_offset
                yield batch
        except CorruptBatch as error:
            self._check_torn(file, error, end)

    def _check_torn(self, file: File, error: CorruptBatch, end: int) -> None:
        """Accept a batch that is being written or that a crash interrupted; refuse other damage."""
        closed = self._only is None and self._base is not None and self._bases()[-1:] != [self._base]
        follows = find_valid_batch(file, error.position + 1, end, self.next_offset)
        if closed or follows is not None:
            raise CorruptStorage(
                self._path(), error.position, self.next_offset, error.reason, _REMEDY
            ) from None

    def _next_segment(self) -> bool:
        """Go on to the segment that begins with the next offset, if it exists."""
        if self.next_offset == self._base or self.next_offset not in self._bases():
            return False
        self.close()
        self._base = self.next_offset
        self._file = self._disk.open(self._path())
        self.position, self._last = 0, None
        return True


def first_offset(disk: Disk, path: str) -> int | None:
    """The offset of the first batch in a file; None if it holds no whole header."""
    file = disk.open(path)
    try:
        return parse_header(file.read(0, max(HEADER_BYTES, min(file.size_bytes(), 1 << 26)))).base_offset
    except CorruptBatch:
        return None
    finally:
        file.close()
