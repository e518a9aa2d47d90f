"""Copies of the records that a truncation drops, each a file beside the log that `kraftd dump` reads.

The directory is one that Apache Kafka ignores: it reads files of the partition's directory only. A file holds
whole batches as a segment does. Its name has the first offset, the offset after the last record, the last
record's epoch and a number that ascends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kraftd.log.disk import Disk, File
from kraftd.log.errors import DiskFull
from kraftd.named_tuple import NamedTuple

TRUNCATED_DIRECTORY = "truncated"
MAX_COPIES = 16
MAX_COPIES_BYTES = 64 << 20  # of all copies; the newest stays whatever its size

_UNFINISHED = ".tmp"
_COPY_BYTES = 1 << 20
_NAME = re.compile(r"\d{20}\.\d+-\d+\.(\d+)\.log")


class Truncation(NamedTuple):
    """The records that a truncation dropped: offsets from `start` to before `end`, their first and last
    epoch, and the file that keeps them.
    """

    start: int
    end: int
    first_epoch: int
    last_epoch: int
    path: str

    @property
    def records(self) -> int:
        return self.end - self.start

    @property
    def epochs(self) -> str:
        """The epochs in words: `3`, or `3 to 5`."""
        first, last = self.first_epoch, self.last_epoch
        return str(first) if first == last else f"{first} to {last}"


class KeptRecords:
    """The copies in one directory, which is made with the first. With `bounded` only the newest MAX_COPIES of
    MAX_COPIES_BYTES stay.

    `write` belongs to the thread that syncs the log.
    """

    def __init__(self, disk: Disk, directory: str, *, bounded: bool = True) -> None:
        self.directory = directory
        self._disk = disk
        self._bounded = bounded
        self._next: int | None = None

    def __repr__(self) -> str:
        return f"<KeptRecords {self.directory}>"

    def names(self) -> list[str]:
        """The names of the whole copies, oldest first."""
        numbered = [(_number(name), name) for name in self._disk.list_names(self.directory)]
        return [name for number, name in sorted(numbered) if number]

    def path_of(self, start: int, end: int, epoch: int) -> str | None:
        """The newest copy of exactly these records, if there is one. A copy with its name is whole."""
        found = [name for name in self.names() if name.startswith(f"{start:020d}.{end}-{epoch}.")]
        return f"{self.directory}/{found[-1]}" if found else None

    def new_path(self, start: int, end: int, epoch: int) -> str:
        """A path for the copy of the records from `start` to before `end`."""
        if self._next is None:
            self._next = _number(self.names()[-1]) + 1 if self.names() else 1
        number, self._next = self._next, self._next + 1
        return f"{self.directory}/{start:020d}.{end}-{epoch}.{number}.log"

    def write(self, path: str, sources: Sequence[tuple[File, int]]) -> None:
        """Copy each file from its position on to `path`, durably on return; then remove what is beyond the
        bounds. Blocks.

        Raises DiskFull, after it has removed the older copies of a bounded directory; StorageError.
        """
        self._disk.make_directory(self.directory)
        self.sweep()
        unfinished = path + _UNFINISHED
        try:
            copy = self._disk.open(unfinished, create=True)
            try:
                _copy(sources, copy)
                copy.sync()
            finally:
                copy.close()
            self._disk.rename(unfinished, path)
            self._disk.sync_directory(self.directory)
        except DiskFull:
            self._disk.remove(unfinished)
            if self._bounded:
                for name in self.names():
                    self._disk.remove(f"{self.directory}/{name}")
            raise
        if self._bounded:
            self._remove_oldest()

    def sweep(self) -> None:
        """Remove what an interrupted copy has left. The log still holds its records."""
        for name in self._disk.list_names(self.directory):
            if name.endswith(_UNFINISHED):
                self._disk.remove(f"{self.directory}/{name}")

    def _remove_oldest(self) -> None:
        kept_bytes = 0
        for at, name in enumerate(reversed(self.names())):
            path = f"{self.directory}/{name}"
            file = self._disk.open(path)
            kept_bytes += file.size_bytes()
            file.close()
            if at and (at >= MAX_COPIES or kept_bytes > MAX_COPIES_BYTES):
                self._disk.remove(path)


def _copy(sources: Sequence[tuple[File, int]], copy: File) -> None:
    written = 0
    for source, position in sources:
        end = source.size_bytes()
        while position < end:
            data = source.read(position, min(_COPY_BYTES, end - position))
            copy.write(written, data)
            position, written = position + len(data), written + len(data)


def _number(name: str) -> int:
    """The number in the name of a copy; 0 for another file."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else 0
