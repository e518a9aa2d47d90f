"""The port through which storage uses files, and the real disk. Its twin in memory is in memory_disk.

Nothing is durable before a sync: a file's makes its bytes durable, a directory's the names in it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from typing import Protocol

from kraftd.log.errors import (
    DirectoryLocked,
    DirectoryProblem,
    DiskFull,
    ReadOnlyStorage,
    StorageError,
    StorageFailure,
)
from kraftd.wire.records import ENGINE

# The operating system's error for a path that leads to no file that can be opened, and the remedy.
_NO_FILE = {
    errno.ENOENT: "No directory can be made there; choose another place",
    errno.EISDIR: "Move the directory away: a file is needed there",
    errno.ENOTDIR: "A part of that path is a file; move it away, or choose another directory",
    errno.ELOOP: "Its symbolic links lead in a circle; put the file itself there",
    errno.ENXIO: "Move away what is there: a file is needed",
    errno.ENAMETOOLONG: "No file can have a name of that length; choose a shorter path",
}
_TOO_MANY = {
    errno.EMFILE: "Allow this process more open files (ulimit -n, LimitNOFILE)",
    errno.ENFILE: "This machine has too many open files; close some or raise fs.file-max",
}


_MAX_VIEWS = 1024  # IOV_MAX: a call takes no more


class ReadableFile(Protocol):
    """An open file, read by position."""

    path: str

    def size_bytes(self) -> int: ...

    def read(self, position: int, size_bytes: int) -> bytes:
        """Read size_bytes from position; fewer only at the end of the file."""


class File(ReadableFile, Protocol):
    """An open file, read and written by position. Safe to read in one thread while another writes."""

    def read_cached(self, position: int, size_bytes: int) -> bytes | memoryview | None:
        """Read like `read` if that needs no wait for the disk, else None."""

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write all of data at position. Raises DiskFull (may be tried again), StorageFailure."""

    def write_views(self, position: int, views: Sequence[bytes | memoryview]) -> None:
        """Write all views one after the other from position on, as `write` does."""

    def truncate(self, size_bytes: int) -> None: ...

    def sync(self) -> None:
        """Make the bytes durable. Raises StorageFailure, after which the file must not be trusted or
        retried."""

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """Files by absolute path. Missing files raise FileNotFoundError; every other error is a StorageError."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read_bytes(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def list_names(self, directory: str) -> list[str]:
        """Names of the files in a directory, sorted; none if it does not exist."""

    def list_others(self, directory: str) -> dict[str, str]:
        """The entries of a directory that are no files: name to kind, in words ("a directory")."""

    def size_bytes(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, or a name in the directory changed, in ms since 1970."""

    def space_bytes(self, path: str) -> tuple[int, int]:
        """The size of the disk that has a directory, and how much of it this user may still write."""

    def make_directory(self, path: str, *, durably: bool = True) -> None:
        """Make the directory and its parents; does nothing if it exists. Unless durably, the owner syncs the
        parent.
        """

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; does nothing if it does not exist."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory atomically, replacing an existing target file."""

    def remove(self, path: str) -> None:
        """Remove a file; does nothing if it does not exist."""

    def set_read_only(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock on a file, which is made if missing. Raises DirectoryLocked."""


def write_atomically(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file at path durably: a crash leaves the old file or the new one. Writes path.tmp first."""
    temporary = path + ".tmp"
    disk.remove(temporary)
    file = disk.open(temporary, create=True)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_directory(os.path.dirname(path))


def write_whole(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file at path, which the end of the process survives; durability is left to the caller."""
    file = disk.open(f"{path}.tmp", create=True)
    try:
        file.write(0, data)
        file.truncate(len(data))
    finally:
        file.close()
    disk.rename(f"{path}.tmp", path)


class RealFile:
    """A file of the operating system."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def __repr__(self) -> str:
        return f"<RealFile {self.path}>"

    def size_bytes(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, position: int, size_bytes: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size_bytes, position)
            while len(data) < size_bytes:
                more = os.pread(self._descriptor, size_bytes - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _storage_error(error, self.path, "read") from error
        return data

    def read_cached(self, position: int, size_bytes: int) -> bytes | memoryview | None:
        view = memoryview(ENGINE.room(size_bytes))  # to write zeros first would cost as much as the copy
        filled = 0
        try:
            while filled < size_bytes:
                got = os.preadv(self._descriptor, [view[filled:]], position + filled, os.RWF_NOWAIT)
                if not got:
                    break
                filled += got
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
                return None
            raise _storage_error(error, self.path, "read") from error
        return view[:filled]

    def write_views(self, position: int, views: Sequence[bytes | memoryview]) -> None:
        try:
            if len(views) == 1:
                written = os.pwrite(self._descriptor, views[0], position)
            else:
                written = os.pwritev(self._descriptor, views[:_MAX_VIEWS], position)
        except OSError as error:
            raise _storage_error(error, self.path, "write to") from error
        if len(views) == 1 and written == len(views[0]):
            return
        for view in views:
            size = len(view)
            if written < size:  # a short write, or more views than one call takes
                self.write(position + written, memoryview(view)[written:])
                written = size
            position, written = position + size, written - size

    def write(self, position: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._descriptor, view, position)
                position += written
                view = view[written:]
        except OSError as error:
            raise _storage_error(error, self.path, "write to") from error

    def truncate(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise _storage_error(error, self.path, "truncate") from error

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            # For any reason: the kernel may have dropped the pages, so a second sync would succeed without
            # them.
            raise StorageFailure(
                f"cannot sync {self.path}: {error.strerror}. What is on disk is unknown; end the process "
                f"and check "
                "the disk before it is started again"
            ) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealLock:
    """A POSIX record lock, which Java's FileChannel.lock respects and takes too."""

    # A POSIX lock does not exclude its own process, so this has the paths that the process has locked.
    _held: set[str] = set()  # noqa: RUF012

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            RealLock._held.discard(self._path)


class RealDisk:
    """The disk of the operating system."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return RealFile(path, os.open(path, flags, 0o666))
        except FileNotFoundError:
            raise
        except OSError as error:
            if not create and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
                return self._open_for_reading(path)
            raise _storage_error(error, path, "open") from error

    def _open_for_reading(self, path: str) -> RealFile:
        try:
            return RealFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            raise _storage_error(error, path, "open") from error

    def read_bytes(self, path: str) -> bytes:
        try:
            with open(path, "rb", opener=_open_without_waiting) as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _storage_error(error, path, "read") from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list_names(self, directory: str) -> list[str]:
        try:
            with os.scandir(directory) as entries:
                return sorted(entry.name for entry in entries if not entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _storage_error(error, directory, "list") from error

    def list_others(self, directory: str) -> dict[str, str]:
        try:
            with os.scandir(directory) as entries:
                return {entry.name: kind for entry in entries if (kind := _kind(entry)) is not None}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _storage_error(error, directory, "list") from error

    def size_bytes(self, path: str) -> int:
        return self._stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return self._stat(path).st_mtime_ns // 1_000_000

    def space_bytes(self, path: str) -> tuple[int, int]:
        try:
            found = os.statvfs(path)
        except OSError as error:
            raise _storage_error(error, path, "look at") from error
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def _stat(self, path: str) -> os.stat_result:
        try:
            return os.stat(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _storage_error(error, path, "look at") from error

    def make_directory(self, path: str, *, durably: bool = True) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for directory in reversed(missing):
            try:
                os.mkdir(directory)
            except FileExistsError:
                if not os.path.isdir(directory):
                    raise StorageError(
                        f"{directory} is a file, a directory is needed. Move it away or choose another one"
                    ) from None
            except OSError as error:
                raise _storage_error(error, directory, "make the directory") from error
            if durably:
                self.sync_directory(os.path.dirname(directory))

    def remove_directory(self, path: str) -> None:
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _storage_error(error, path, "remove the directory") from error

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target)
        except OSError as error:
            raise _storage_error(error, target, f"rename {source} to") from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _storage_error(error, path, "remove") from error

    def set_read_only(self, path: str) -> None:
        try:
            os.chmod(path, 0o444 & os.stat(path).st_mode)
        except OSError as error:
            raise _storage_error(error, path, "make read-only") from error

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageFailure(
                f"cannot sync the directory {path}: {error.strerror}. Which files it holds after a crash "
                f"is unknown"
            ) from error

    def lock(self, path: str) -> RealLock:
        path = os.path.realpath(path)
        if path not in RealLock._held:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise _storage_error(error, path, "open") from error
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise _storage_error(error, path, "lock") from error
            else:
                RealLock._held.add(path)
                return RealLock(path, descriptor)
        raise DirectoryLocked(
            f"{os.path.dirname(path)} is in use by another process, which holds the lock on {path}. Stop "
            f"that one "
            "first (a Kafka or kraftd with the same metadata.log.dir), or give this node a directory of "
            "its own"
        )


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a path without waiting for the writer of a pipe, which reads like an empty file; returns a
    descriptor.
    """
    return os.open(path, flags | os.O_NONBLOCK)


def _kind(entry: os.DirEntry[str]) -> str | None:
    """What an entry is, in words; None for a file."""
    try:
        if entry.is_file():
            return None
        if entry.is_dir():
            return "a directory"
    except OSError:
        pass  # its links lead in a circle
    return "a symbolic link that leads to no file" if entry.is_symlink() else "a pipe, a socket or a device"


def _storage_error(error: OSError, path: str, doing: str) -> StorageError:
    """The StorageError for an OSError."""
    text = f"cannot {doing} {path}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{text}. Make room on that disk; nothing that was acknowledged is lost")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ReadOnlyStorage(
            f"{text}. Give the user that runs kraftd (uid {os.getuid()}) the right to write there, "
            "and check that the disk is not mounted read-only"
        )
    if error.errno in _NO_FILE:
        return DirectoryProblem(f"{text}. {_NO_FILE[error.errno]}")
    return StorageFailure(f"{text}. {_TOO_MANY.get(error.errno or 0, 'Check the disk (dmesg, SMART)')}")
