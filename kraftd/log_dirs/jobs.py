"""Work on a log directory for a thread: made on the event loop, performed elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from kraftd.log.data.resources import Deletion
from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import encode_rows
from kraftd.named_tuple import NamedTuple

# Runs jobs, and returns the failure of each, or None. Blocks.
RunAll = Callable[[Sequence[Callable[[], None]]], list[StorageError | None]]


def attempt(job: Callable[[], None]) -> StorageError | None:
    """Run a job; its failure, or None."""
    try:
        job()
    except StorageError as error:
        return error
    return None


def in_turn(jobs: Sequence[Callable[[], None]]) -> list[StorageError | None]:
    """Run jobs one after the other."""
    return [attempt(job) for job in jobs]


class ReplacedFile:
    """A small file of a log directory that jobs replace: one at a time, and none by an older content."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._made = 0
        self._written = 0

    def __repr__(self) -> str:
        return f"<ReplacedFile {self.path}, {self._written} of {self._made}>"

    def next_number(self) -> int:
        """The number of a new content; for the event loop's thread."""
        self._made += 1
        return self._made

    def write(self, number: int, content: bytes) -> None:
        """Replace the file durably, unless a later content did. Blocks. Raises StorageError."""
        with self._lock:
            if number > self._written:
                write_atomically(self._disk, self.path, content)
                self._written = number


class WriteJob(NamedTuple):
    """Replaces a checkpoint of a log directory, durably. `rows` has texts of `offset_row`."""

    log_directory: str
    file: ReplacedFile
    number: int
    rows: Sequence[str]

    def run(self) -> None:
        """Blocks. Raises StorageError."""
        self.file.write(self.number, encode_rows(self.rows))


class ReplacedFiles:
    """The checkpoints of log directories, by path."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._files: dict[str, ReplacedFile] = {}

    def of(self, directory: str, name: str) -> ReplacedFile:
        """A file of a directory."""
        path = f"{directory}/{name}"
        if path not in self._files:
            self._files[path] = ReplacedFile(self._disk, path)
        return self._files[path]

    def __repr__(self) -> str:
        return f"<ReplacedFiles {', '.join(self._files)}>"


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
