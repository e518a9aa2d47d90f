"""Reads a small file that a user has named, which may also be a pipe, a device or a directory.

A pipe that another process writes is read to its end, as in `kraftd start <(envsubst < template)`. A pipe
without a writer causes only a short wait.
"""

from __future__ import annotations

import errno
import os
import select
import time

WAIT_S = 5.0  # for the process at the other end of a pipe
_NO_END = "it is a pipe or a device that did not end in {:g} s; give a file, or write to it before"
_PIECE_BYTES = 1 << 16


def read_input_file(path: str | os.PathLike[str], max_bytes: int, wait_s: float | None = None) -> bytes:
    """All bytes of a file, of which there may be `max_bytes`.

    `wait_s` is for how long a pipe may have nothing to read, WAIT_S unless it is given. Raises OSError, whose
    strerror says what is wrong.
    """
    wait_s = WAIT_S if wait_s is None else wait_s
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        deadline_s = time.monotonic() + wait_s
        found = bytearray()
        while len(found) <= max_bytes:
            if not poll.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
                raise OSError(errno.ETIMEDOUT, _NO_END.format(wait_s))
            try:
                piece = os.read(descriptor, min(_PIECE_BYTES, max_bytes + 1 - len(found)))
            except BlockingIOError:
                continue  # nothing to read after all: another reader was faster, or a writer is back
            if not piece:
                return bytes(found)
            found += piece
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes")
    finally:
        os.close(descriptor)
