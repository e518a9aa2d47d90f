"""The sync of a whole file system, which makes thousands of files durable by one flush of its device."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from functools import cache

# These write back all that is dirty, flush the device, and report writes that failed. Others, as those of
# FUSE, may leave out one of it.
KINDS = frozenset({"ext4", "xfs"})
SINCE = (5, 8)  # the Linux that reports failed writes there
MOUNTS = "/proc/self/mountinfo"


@cache
def _syncfs() -> Callable[[int], int] | None:
    """The system's function, if it reports failures."""
    system = os.uname()
    version = tuple(int(each) for each in re.findall(r"\d+", system.release)[:2])
    if system.sysname != "Linux" or version < SINCE:
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def is_possible(path: str) -> bool:
    """Return whether `sync` makes all of the file system of a path durable."""
    try:
        return _syncfs() is not None and kind(path) in KINDS
    except (OSError, ValueError):
        return False


def kind(path: str) -> str | None:
    """The kind of the file system of a path, if the system says so. Raises OSError."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            mount, _, source = line.partition(" - ")
            if mount.split()[2] == number:
                return source.split()[0]
    return None


def sync(path: str) -> None:
    """Make all files and names durable in the file system of a directory. Blocks. Raises OSError."""
    syncfs = _syncfs()
    assert syncfs is not None, "is_possible"
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
