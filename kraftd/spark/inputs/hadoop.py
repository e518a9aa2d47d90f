"""Inputs on the file systems of a session's Hadoop configuration: copied, and then read like local files.

    use_copies(copy_inputs(spark, ["hdfs://namenode/logs/n1"]))

Spark's Python workers have no Hadoop client. So the JVM of the driver copies the segments and checkpoints of
an input to a directory that the workers share. Another call copies what is new there. If the source has lost
a segment or checkpoint, that call makes another directory, with links to what both have: reads that began
before keep theirs. The copies stay until the process ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE
from kraftd.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import SUFFIX
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import is_local, join, split_name

_NAMES = (META_PROPERTIES, EPOCHS_FILE)
_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, SUFFIX)
_UNKNOWN = ("UnsupportedFileSystemException", "ClassNotFoundException")
"""Java's exceptions for a scheme of which the session has no file system."""
_Files = dict[str, tuple[int, int]]
"""Size in bytes and time in milliseconds, by name."""
_copied: dict[str, str] = {}
_lock = threading.Lock()


def copy_inputs(session: SparkSession, paths: Sequence[str], scratch: str | None = None) -> dict[str, str]:
    """Copy what a session's file systems hold of some inputs: the copy of each directory, by its URI.

    Local paths are left out, and so are schemes that the session does not know, which are left to Arrow.
    scratch is where the copies go. Raises InputError.
    """
    found = {}
    with _lock:
        for path in paths:
            system = None if is_local(path) else _file_system(session, path)
            if system is not None:
                try:
                    root, copy = _copy_input(session, system, path, scratch)
                except Py4JJavaError as error:
                    raise InputError(f"{path}: {_reason(error)}") from None
                found[root] = copy
    return found


def _copy_input(session: SparkSession, system: Any, path: str, scratch: str | None) -> tuple[str, str]:
    """Copy an input, and the meta.properties beside it; returns the directory that has both, and its copy."""
    java_path = session.sparkContext._jvm.org.apache.hadoop.fs.Path
    if not system.exists(java_path(path)):
        raise InputError(f"{path}: no such file or directory")
    directory, name = path, None
    if not system.getFileStatus(java_path(path)).isDirectory():
        directory, name = split_name(path)
    root, home = split_name(directory)
    mirror = _Mirror(system, java_path)
    found = {"": mirror.files(root, lambda each: each == META_PROPERTIES)}
    if name is None:
        found[f"/{home}"] = mirror.files(directory, _is_read)
        partition = f"/{home}/{PARTITION_DIRECTORY}"
        found[partition] = mirror.files(join(directory, PARTITION_DIRECTORY), _is_read)
    else:
        stem = f"{name.rpartition('.')[0]}."
        found[f"/{home}"] = mirror.files(
            directory, lambda each: each in _NAMES or (_is_read(each) and each.startswith(stem))
        )
    copy = _copied.get(root)
    if copy is None or any(_has_lost(f"{copy}{place}", files) for place, files in found.items()):
        before, copy = copy, join(_new_directory(session, path, scratch), quote(root, safe=""))
        for place in found if before is not None else ():
            _link_files(f"{before}{place}", f"{copy}{place}")
    for place, files in found.items():
        mirror.update(f"{root}{place}", f"{copy}{place}", files)
    _copied[root] = copy
    return root, copy


def _has_lost(copy: str, files: _Files) -> bool:
    """Return whether a directory lost a segment or checkpoint, or a part of one, since it was copied."""
    entries = os.scandir(copy) if os.path.isdir(copy) else ()
    return any(
        entry.stat().st_size > files.get(entry.name, (0, 0))[0]
        for entry in entries
        if entry.name.endswith((LOG_SUFFIX, SUFFIX))
    )


def _link_files(source: str, target: str) -> None:
    """Link the files of a directory into another one."""
    os.makedirs(target, exist_ok=True)
    for entry in os.scandir(source) if os.path.isdir(source) else ():
        if entry.is_file():
            os.link(entry.path, join(target, entry.name))


class _Mirror:
    """Makes local directories equal to those of a Java file system."""

    def __init__(self, system: Any, java_path: Callable[[str], Any]) -> None:
        self._system = system
        self._path = java_path

    def update(self, source: str, target: str, files: _Files) -> None:
        """Copy the files of a directory that differ in size or time, and delete what is gone."""
        os.makedirs(target, exist_ok=True)
        for entry in os.scandir(target):
            if entry.is_file() and entry.name not in files:
                os.remove(entry.path)
        for name, (size_bytes, modified_ms) in sorted(files.items()):
            place = join(target, name)
            if not _is_copy(place, size_bytes, modified_ms):
                unfinished = f"{place}.unfinished"
                self._system.copyToLocalFile(
                    False, self._path(join(source, name)), self._path(unfinished), True
                )
                os.utime(unfinished, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
                os.replace(unfinished, place)

    def files(self, directory: str, is_wanted: Callable[[str], bool]) -> _Files:
        """The wanted files of a directory; none where there is no directory."""
        place = self._path(f"{directory}/")
        if not self._system.exists(place):
            return {}
        return {
            entry.getPath().getName(): (entry.getLen(), entry.getModificationTime())
            for entry in self._system.listStatus(place)
            if entry.isFile() and is_wanted(entry.getPath().getName())
        }


def _is_copy(path: str, size_bytes: int, modified_ms: int) -> bool:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    return found.st_size == size_bytes and found.st_mtime_ns == modified_ms * 1_000_000


def _is_read(name: str) -> bool:
    return name in _NAMES or name.endswith(_SUFFIXES)


def _new_directory(session: SparkSession, path: str, scratch: str | None) -> str:
    if scratch is None and not session.sparkContext.master.startswith("local"):
        raise InputError(
            f"{path}: it is copied before it is read: give scratch (--scratch), a directory that the driver "
            "and all workers share"
        )
    directory = tempfile.mkdtemp(prefix="kraftd-spark-input-", dir=scratch)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _file_system(session: SparkSession, path: str) -> Any | None:
    """The file system of a path; None for a scheme that the session does not know."""
    settings = session.sparkContext._jsc.hadoopConfiguration()
    jvm: Any = session.sparkContext._jvm
    try:
        return jvm.org.apache.hadoop.fs.Path(path).getFileSystem(settings)
    except Py4JJavaError as error:
        if any(name in str(error.java_exception.toString()) for name in _UNKNOWN):
            return None
        raise InputError(f"{path}: {_reason(error)}") from None


def _reason(error: Py4JJavaError) -> str:
    return str(error.java_exception.toString()).split("\n")[0]
