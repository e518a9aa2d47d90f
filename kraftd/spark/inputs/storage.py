"""Files, local or on object storage, by Arrow's file systems: a path, or a URI of a scheme that it
knows (s3, gs, abfs, hdfs; Hadoop's s3a and s3n are read as s3). Of a URI that `hadoop` has copied, the copy
is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import ArrowInvalid, NativeFile, fs

from kraftd.spark.errors import InputError

_LISTENER = re.compile(r"[\w.-]+:\d{1,5}(,[\w.-]+:\d{1,5})*|\[[\da-fA-F:]+\]:\d{1,5}")
_FILE_URI = re.compile(r"file:(//(localhost)?(?=/))?")
_KEPT = (".log", ".checkpoint")
_copies: dict[str, str] = {}
_older: dict[str, list[str]] = {}


class StoredFile:
    """An open file, read by position: a `File` of `kraftd.log.disk` that cannot be written.

    stored_at is where its bytes are, for a process that does not know the copies.
    """

    def __init__(self, path: str, stored_at: str | None = None) -> None:
        self.path = path
        system, name = _resolve(stored_at or path)
        try:
            self._file = system.open_input_file(name)
        except OSError as error:
            raise InputError(f"{path}: {_reason(error)}") from None

    def __repr__(self) -> str:
        return f"<StoredFile {self.path}>"

    def size_bytes(self) -> int:
        return int(self._file.size())

    def read(self, position: int, size_bytes: int) -> bytes:
        """Up to size_bytes from position; fewer only at the end."""
        found: bytes = self._file.read_at(size_bytes, position)
        return found

    def close(self) -> None:
        self._file.close()

    def write(self, position: int, data: bytes | memoryview) -> None:
        raise NotImplementedError("the pipeline never writes to its input")

    def truncate(self, size_bytes: int) -> None:
        raise NotImplementedError("the pipeline never writes to its input")

    def sync(self) -> None:
        raise NotImplementedError("the pipeline never writes to its input")


def list_files(directory: str) -> list[tuple[str, int]]:
    """(name, size in bytes) of the files in a directory, in order of name; none where there is none."""
    found = _entries(directory)
    return sorted((entry.base_name, entry.size) for entry in found if entry.type == fs.FileType.File)


def list_directories(directory: str) -> list[str]:
    """The names of the directories in a directory, in order; none where there is none."""
    return sorted(entry.base_name for entry in _entries(directory) if entry.type == fs.FileType.Directory)


def _entries(directory: str) -> list[fs.FileInfo]:
    system, name = _resolve(directory)
    try:
        found: list[fs.FileInfo] = system.get_file_info(fs.FileSelector(name, allow_not_found=True))
    except NotADirectoryError:
        return []
    except OSError as error:
        raise InputError(f"{directory}: {_reason(error)}") from None
    return found


def kind_of(path: str) -> str:
    """`file`, `directory` or `missing`."""
    system, name = _resolve(path)
    try:
        kind = system.get_file_info(name).type
    except OSError as error:
        raise InputError(f"{path}: {_reason(error)}") from None
    return {fs.FileType.File: "file", fs.FileType.Directory: "directory"}.get(kind, "missing")


def size_of(path: str) -> int:
    """The size of a file in bytes."""
    system, name = _resolve(path)
    return int(system.get_file_info(name).size)


def read_bytes(path: str) -> bytes | None:
    """The content of a small file; None if it does not exist."""
    if kind_of(path) != "file":
        return None
    file = StoredFile(path)
    try:
        return file.read(0, file.size_bytes())
    finally:
        file.close()


def open_output(path: str) -> NativeFile:
    """Open a new file for writing, and make its directories. The file exists once it is closed."""
    system, name = _resolve(path)
    try:
        system.create_dir(split_name(name)[0], recursive=True)
        return system.open_output_stream(name)
    except OSError as error:
        raise InputError(f"{path}: {_reason(error)}") from None


def open_parquet(path: str) -> ds.Dataset:
    """A Parquet file, to be read in batches."""
    system, name = _resolve(path)
    try:
        return ds.dataset(name, filesystem=system, format="parquet")
    except OSError as error:
        raise InputError(f"{path}: {_reason(error)}") from None


def open_parquet_file(path: str) -> pq.ParquetFile:
    """One Parquet file, of which a read holds a column's part of a row group and a batch, and no more."""
    system, name = _resolve(path)
    try:
        return pq.ParquetFile(system.open_input_file(name), pre_buffer=False)
    except (OSError, ArrowInvalid) as error:
        raise InputError(f"{path}: {_reason(error)}") from None


def write_bytes(path: str, data: bytes) -> None:
    """Write a small file, in place of an existing one."""
    with open_output(path) as stream:
        stream.write(data)


def delete_files(directory: str, names: Iterable[str]) -> None:
    """Delete files of a directory."""
    for each in names:
        system, name = _resolve(join(directory, each))
        system.delete_file(name)


def delete_directory(path: str) -> None:
    """Delete a directory with all it holds; nothing where there is none."""
    if kind_of(path) == "directory":
        system, name = _resolve(path)
        system.delete_dir(name)


def replace_directory(source: str, target: str) -> None:
    """Put a directory in the place of another one, on a file system that can rename it."""
    delete_directory(target)
    system, name = _resolve(source)
    system.move(name, _resolve(target)[1])


def absolute(path: str) -> str:
    """A path that means the same in every process."""
    path = _FILE_URI.sub("", path, count=1)
    return path.rstrip("/") if "://" in path else os.path.abspath(path)


def is_local(path: str) -> bool:
    """Return whether a path is one of this machine."""
    return "://" not in path


def use_copies(copies: Mapping[str, str]) -> None:
    """Read what lies in these directories, by URI, from their copies from now on.

    A segment or checkpoint that only an older copy has is read from there.
    """
    for root, copy in copies.items():
        before = _copies.get(root, copy)
        if before != copy:
            _older.setdefault(root, []).append(before)
        _copies[root] = copy


def stored_at(path: str) -> str:
    """Where the bytes of a path are: in a copy, if there is one."""
    roots = [root for root in _copies if path.startswith(f"{root}/")]
    if not roots:
        return path
    root = max(roots, key=len)
    rest = path.removeprefix(root)
    if rest.endswith(_KEPT) and not os.path.exists(_copies[root] + rest):
        for copy in reversed(_older.get(root, ())):
            if os.path.exists(copy + rest):
                return copy + rest
    return _copies[root] + rest


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}"


def split_name(path: str) -> tuple[str, str]:
    """A file's directory and its name."""
    directory, _, name = path.rpartition("/")
    return directory, name


def is_listener(source: str) -> bool:
    """Return whether a source is no path but the address of a listener, or several with commas."""
    return _LISTENER.fullmatch(source) is not None


def paths_of(paths: Sequence[str]) -> list[str]:
    """Absolute paths, each once."""
    return list(dict.fromkeys(absolute(path) for path in paths))


def _resolve(path: str) -> tuple[fs.FileSystem, str]:
    path = stored_at(path)
    if is_local(path):
        return fs.LocalFileSystem(), path
    for alias in ("s3a://", "s3n://"):
        if path.startswith(alias):
            path = "s3://" + path.removeprefix(alias)
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(path)
    except (ArrowInvalid, OSError, ValueError) as error:
        raise InputError(f"{path}: {_reason(error)}") from None
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, PermissionError):
        return "permission denied"
    return str(error).split("\n")[0].split(". Detail:")[0]
