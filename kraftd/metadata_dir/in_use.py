"""Finds the process that uses a directory while it is read: Kafka's and kraftd's nodes hold a lock on
`.lock`.
"""

from __future__ import annotations

import fcntl
import os
import struct

from kraftd.metadata_dir.directory import LOCK_FILE, PARTITION_DIRECTORY

_FLOCK = "@hhqqi"
"""struct flock: type, whence, start, length, process."""


def lock_holder(path: str) -> int | None:
    """The id of the process that holds a local directory, or the one that contains path; None if there is
    none, or if it is unknown.

    It only queries the lock, so that a node that starts meanwhile gets it.
    """
    directory, _, _ = f"{path}/".partition(f"/{PARTITION_DIRECTORY}/")
    try:
        descriptor = os.open(os.path.join(directory, LOCK_FILE), os.O_RDONLY)
    except OSError:
        return None
    try:
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(process)
