"""Work on a log directory for a thread: made on the event loop, performed elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from kraftd.log.data.resources import Deletion
from kraftd.log.disk import Disk, write_atomically


class WriteJob(NamedTuple):
    """Replaces a small file of a log directory, durably."""

    disk: Disk
    log_directory: str
    path: str
    content: bytes

    def run(self) -> None:
        """Blocks. Raises StorageError."""
        write_atomically(self.disk, self.path, self.content)


class DeletionJob(NamedTuple):
    """Removes files that lost their names before, and a directory with all that is in it."""

    disk: Disk
    deletion: Deletion

    def run(self) -> None:
        """Blocks. Raises StorageError."""
        for path in self.deletion.paths:
            self.disk.remove(path)
        if self.deletion.directory is not None:
            remove_tree(self.disk, self.deletion.directory)


def remove_tree(disk: Disk, directory: str) -> None:
    """Remove a directory and what is in it. Raises StorageError."""
    for name in disk.list_names(directory):
        disk.remove(f"{directory}/{name}")
    for name in disk.list_others(directory):
        remove_tree(disk, f"{directory}/{name}")
    disk.remove_directory(directory)
