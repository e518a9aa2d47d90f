"""The flush of a log: made on the event loop, performed by a thread, and accounted for on the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kraftd.log.disk import Disk, write_atomically, write_beside, write_whole
from kraftd.log.errors import StorageError

WHOLE_SYNC_FROM = 32  # logs; what other processes have written is flushed with them

# Runs jobs, and returns the failure of each, or None. Blocks.
RunAll = Callable[[Sequence[Callable[[], None]]], list[StorageError | None]]


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

    def write_only(self) -> None:
        """Write the small files, and leave it to the system when all of it becomes durable. Raises
        StorageError.
        """
        for path, content in self.replaced:
            write_whole(self.disk, path, content)

    def write_beside(self) -> None:
        """Write the small files, but not under their names. Raises StorageError."""
        for path, content in self.replaced:
            write_beside(self.disk, path, content)

    def put_in_place(self) -> None:
        """Give the small files their names. Raises StorageError."""
        for path, _ in self.replaced:
            self.disk.rename(f"{path}.tmp", path)

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


def run_flushes(
    jobs: Sequence[FlushJob], directories: Sequence[str], disk: Disk, run_all: RunAll
) -> list[StorageError | None]:
    """Run the flushes of logs in these log directories; returns the failure of each, or None. Blocks.

    Those of many logs are one sync of the file systems: a file's own costs a flush of the device each. The
    small files get their names after it. These become durable, in order, with the next name that is synced.
    """
    if len(jobs) >= WHOLE_SYNC_FROM and all(map(disk.has_whole_sync, directories)):
        try:
            _run_by_whole_syncs(jobs, directories, disk)
        except StorageError:
            pass  # each job says which file it is
        else:
            return [None] * len(jobs)
    return run_all([job.run for job in jobs])


def _run_by_whole_syncs(jobs: Sequence[FlushJob], directories: Sequence[str], disk: Disk) -> None:
    for job in jobs:
        job.write_beside()
    for path in directories:
        disk.sync_whole(path)
    for job in jobs:
        job.put_in_place()
