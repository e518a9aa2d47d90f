"""The flush of a log: made on the event loop, performed by a thread, and accounted for on the loop."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.log.disk import Disk, write_atomically
from kraftd.named_tuple import NamedTuple


class FlushJob(NamedTuple):
    """Makes a log durable up to end_offset, in the order of the fields: the names in directories that a
    truncation has changed, whole small files (path and content), files, and the names of new files.
    """

    disk: Disk
    end_offset: int
    names_first: Sequence[str]
    replaced: Sequence[tuple[str, bytes]]
    files: Sequence[str]
    names_last: Sequence[str]

    def run(self) -> None:
        """Blocks. A file that is gone was deleted with its records. Raises StorageError."""
        for directory in self.names_first:
            self.disk.sync_directory(directory)
        for path, content in self.replaced:
            write_atomically(self.disk, path, content)
        for path in self.files:
            try:
                file = self.disk.open(path)
            except FileNotFoundError:
                continue
            try:
                file.sync()
            finally:
                file.close()
        for directory in self.names_last:
            self.disk.sync_directory(directory)
