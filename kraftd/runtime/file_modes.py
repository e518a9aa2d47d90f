"""The permissions of a node's files: for its own user alone, unless the operator decides otherwise.

The metadata log holds SCRAM keys, and the audit stream names principals. New files and directories get no
permissions for others; existing wider ones are reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice

from kraftd.named_tuple import NamedTuple

UMASK_VARIABLE = "KRAFTD_UMASK"
DEFAULT_UMASK = 0o077
START_FILES = 10_000  # examined at a start, in about 40 ms


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


class WiderFiles(NamedTuple):
    """How many files and directories below a directory are open to more users; the first, and its mode."""

    directory: str
    files: int
    first: str
    mode: str
    remedy: str

    def __str__(self) -> str:
        if self.files == 1:
            return f"other users have rights to {self.first} in it (mode {self.mode})"
        return (
            f"other users have rights to {self.files:,} files in it, such as {self.first} (mode {self.mode})"
        )


def _current_umask() -> int:
    mask = os.umask(0o777)  # it can only be read by setting it
    os.umask(mask)
    return mask


def wider_modes(paths: Iterable[str]) -> list[WiderMode]:
    """Of paths that exist, those that are open to more users than new files would be."""
    mask = _current_umask()
    found = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode & 0o777
        except OSError:
            continue
        if mode & mask:
            found.append(WiderMode(path, mode, f"chmod {mode & ~mask:o} {path}"))
    return found


def wider_files(directory: str, first: str = "", limit: int | None = None) -> WiderFiles | None:
    """What is open to more users below a directory, of the first `limit` files in it; None if nothing is.

    The subdirectory `first` is examined before the others.
    """
    mask = _current_umask()
    wide = [one for one in islice(_modes_below(directory, first), limit) if one[1] & mask]
    if not wide:
        return None
    path, mode = wide[0]
    return WiderFiles(directory, len(wide), path, f"{mode:o}", f"chmod -R {_without(mask)} {directory}")


def _modes_below(directory: str, first: str) -> Iterator[tuple[str, int]]:
    """Paths and permissions of files and directories at any depth; links are left out."""
    try:
        with os.scandir(directory) as entries:
            below = sorted(entries, key=lambda one: (one.name != first, one.name))
    except OSError:
        return
    for entry in below:
        if entry.is_symlink():
            continue
        try:
            mode = entry.stat(follow_symlinks=False).st_mode & 0o777
        except OSError:  # deleted meanwhile
            continue
        yield entry.path, mode
        if entry.is_dir(follow_symlinks=False):
            yield from _modes_below(entry.path, "")


def _without(mask: int) -> str:
    """The permissions of a mask as chmod takes them away: "g-rwx,o-rwx"."""
    rights = ((name, (mask >> shift) & 7) for name, shift in (("u", 6), ("g", 3), ("o", 0)))
    return ",".join(
        f"{name}-" + "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if bits & bit)
        for name, bits in rights
        if bits
    )
