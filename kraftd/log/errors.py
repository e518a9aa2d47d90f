"""The faults of a directory or its disk. Every text names the path and says what to do."""

from __future__ import annotations


class StorageError(Exception):
    """The base of all errors of files; its text is for the operator."""


class StorageFailure(StorageError):
    """A write or sync failed, and what reached the disk is unknown. The process must end, without a retry."""


class DiskFull(StorageError):
    """The disk is full. Nothing is lost, and readers see no torn data: retry the write once there
    is space.
    """


class ReadOnlyStorage(StorageError):
    """The directory cannot be written to."""


class DirectoryLocked(StorageError):
    """Another process works on the directory."""


class DirectoryProblem(StorageError):
    """The directory is not formatted, half formatted, or belongs to another node or cluster."""


class CheckpointMissing(DirectoryProblem):
    """The log begins behind offset 0, and no checkpoint reaches there. Nothing was changed.

    directory is the partition's; the log begins at log_start_offset. `found` is the text without the advice.
    """

    def __init__(self, directory: str, log_start_offset: int, found: str, remedy: str) -> None:
        super().__init__(f"{found}. {remedy}")
        self.directory = directory
        self.log_start_offset = log_start_offset
        self.found = found


class CorruptStorage(StorageError):
    """Bytes that were once synced are damaged. Nothing was changed.

    path and position say where. offset is the first log offset that cannot be read, None if the file has
    none. `found` is the text without the advice.
    """

    def __init__(self, path: str, position: int, offset: int | None, reason: str, remedy: str) -> None:
        where = f"{path}, byte {position}" + ("" if offset is None else f" (offset {offset})")
        self.found = f"{where}: {reason}"
        super().__init__(f"{self.found}. {remedy}")
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason
