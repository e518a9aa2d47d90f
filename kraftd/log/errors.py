"""What can be wrong with a directory or its disk. Every text names the path and says what to do."""

from __future__ import annotations


class StorageError(Exception):
    """Whatever is wrong with files; its text is for the person who has to act."""


class StorageFailure(StorageError):
    """A write or sync failed and what reached the disk is unknown. The process must end; nothing is
    retried."""


class DiskFull(StorageError):
    """No room. Nothing is lost or torn for readers: the same write may be tried again once there is room."""


class ReadOnlyStorage(StorageError):
    """The directory cannot be written to."""


class DirectoryLocked(StorageError):
    """Another process works on the directory."""


class DirectoryProblem(StorageError):
    """The directory is not formatted, half formatted, or belongs to another node or cluster."""


class CheckpointMissing(DirectoryProblem):
    """The log begins behind offset 0, and no checkpoint reaches there. Nothing was changed.

    directory is the partition's, log_start_offset where the log begins; `found` is the text without what to
    do.
    """

    def __init__(self, directory: str, log_start_offset: int, found: str, remedy: str) -> None:
        super().__init__(f"{found}. {remedy}")
        self.directory = directory
        self.log_start_offset = log_start_offset
        self.found = found


class CorruptStorage(StorageError):
    """Bytes that were once synced are damaged. Nothing was changed.

    path and position say where, offset is the first log offset that cannot be read (None where it has none);
    `found` is the text without what to do.
    """

    def __init__(self, path: str, position: int, offset: int | None, reason: str, remedy: str) -> None:
        where = f"{path}, byte {position}" + ("" if offset is None else f" (offset {offset})")
        self.found = f"{where}: {reason}"
        super().__init__(f"{self.found}. {remedy}")
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason
