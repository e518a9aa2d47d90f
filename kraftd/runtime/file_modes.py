"""The permissions of a node's files: for its own user alone, unless the operator decides otherwise.

The metadata log holds SCRAM keys, and the audit stream names principals. New files and directories get no
permissions for others; existing wider ones are reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

UMASK_VARIABLE = "KRAFTD_UMASK"
DEFAULT_UMASK = 0o077


class WiderMode(NamedTuple):
    """A path with permissions that the umask would withhold."""

    path: str
    mode: int
    remedy: str


def set_umask(text: str | None) -> None:
    """Withhold the permissions of an octal umask from the process' new files; by default, others' and the
    group's.

    Raises ValueError for a text that is no umask.
    """
    mask = DEFAULT_UMASK if not text else int(text, 8)
    if not 0 <= mask <= 0o777:
        raise ValueError(text)
    os.umask(mask)


def wider_modes(paths: Iterable[str]) -> list[WiderMode]:
    """Of paths that exist, those that are open to more users than new files would be."""
    mask = os.umask(0o777)  # it can only be read by setting it
    os.umask(mask)
    found = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode & 0o777
        except OSError:
            continue
        if mode & mask:
            found.append(WiderMode(path, mode, f"chmod {mode & ~mask:o} {path}"))
    return found
