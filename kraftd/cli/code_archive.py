"""One file with the code of all modules that a start loads, beside the ``.pyc`` of each.

Of an import, searching directories and opening files take as long as running the module. The archive has
what the files ``.pyc`` have, with the path, time and size of each source, so that one stat finds a module. A
module whose source has changed is imported from its own files. A node whose modules were not all in the
archive writes it anew once it serves, as Python does with a ``.pyc``.

`write_code_archive` writes it for users who may not write there.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType, ModuleType

RENEW_AFTER_S = 5.0  # the start of a node and its first requests come first
LENGTH_BYTES = 8  # of the number at the end: how long the index before it is
MASK = 0xFFFF_FFFF  # times and sizes are kept as in a .pyc


class Row(NamedTuple):
    """A module: its source, as it was when it was compiled, and where its code is in the archive."""

    source: str
    cached: str
    is_package: bool
    mtime_s: int
    size_bytes: int
    offset: int
    length_bytes: int


class CodeArchive:
    """A finder of modules for `sys.meta_path`; without a file that this Python wrote, it finds none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._rows: dict[str, tuple[str, str, bool, int, int, int, int]] = {}
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError:
            return
        try:
            end = os.fstat(self._file).st_size - LENGTH_BYTES
            length = int.from_bytes(os.pread(self._file, LENGTH_BYTES, end), "little")
            setting, rows = marshal.loads(os.pread(self._file, min(length, end), max(end - length, 0)))
        except (OSError, EOFError, ValueError, TypeError):
            return
        if setting == _setting():
            self._rows = rows

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The spec of a module whose source is as it was when the archive was written."""
        if name not in self._rows:
            return None
        row = Row(*self._rows[name])
        if _state(row.source) != (row.mtime_s, row.size_bytes):
            return None
        loader = ArchivedLoader(name, row.source, self._file, row.offset, row.length_bytes)
        spec = ModuleSpec(name, loader, origin=row.source, is_package=row.is_package)
        spec.has_location = True
        spec.cached = row.cached
        if row.is_package:
            spec.submodule_search_locations = [os.path.dirname(row.source)]
        return spec

    def specs(self) -> Iterator[ModuleSpec]:
        """Those of all modules whose source is as it was."""
        return filter(None, map(self.find_spec, self._rows))

    def holds(self, spec: ModuleSpec) -> bool:
        """Return whether the archive has a module, with its source as it is now."""
        return self.find_spec(spec.name) is not None

    def __repr__(self) -> str:
        return f"<CodeArchive {self.path}, {len(self._rows)} modules>"


class ArchivedLoader(SourceFileLoader):
    """Loads a module's code from the archive, and all else that is asked of a loader from its source."""

    def __init__(self, name: str, source: str, file: int, offset: int, length_bytes: int) -> None:
        super().__init__(name, source)
        self._place = file, length_bytes, offset

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            code: CodeType = marshal.loads(os.pread(*self._place))
        except (OSError, EOFError, ValueError, TypeError):
            return super().get_code(fullname)
        return code


def use_archive() -> None:
    """Find modules in this installation's archive first, from now on."""
    sys.meta_path.insert(0, CodeArchive(archive_path()))


def renew_archive_later() -> None:
    """Write the archive anew in a few seconds, if modules that are loaded then have not come from it."""
    timer = threading.Timer(RENEW_AFTER_S, _renew)
    timer.daemon = True
    timer.start()


def _renew() -> None:
    finders = [finder for finder in sys.meta_path if isinstance(finder, CodeArchive)]
    specs = list(archivable(list(sys.modules.values())))
    if not finders or sys.dont_write_bytecode or all(map(finders[0].holds, specs)):
        return
    # Nodes of other roles keep what they load.
    specs += finders[0].specs()
    with suppress(OSError):  # a directory of another user, a full disk: the next start is as slow as this one
        write_archive(archive_path(), specs)


def archive_path() -> str:
    """Where the archive of this installation is: with the bytecode of this package."""
    return os.path.join(
        os.path.dirname(__spec__.cached or __file__), f"start.{sys.implementation.cache_tag}.archive"
    )


def archivable(modules: Iterable[ModuleType]) -> Iterator[ModuleSpec]:
    """The specs of those modules that have a source file."""
    for module in modules:
        spec = getattr(module, "__spec__", None)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin and spec.cached:
            yield spec


def write_archive(path: str, specs: Iterable[ModuleSpec]) -> None:
    """Replace the archive by one with the code of these modules. Raises OSError."""
    rows: dict[str, tuple[str | bool | int, ...]] = {}
    part = f"{path}.{os.getpid()}"
    with open(part, "wb") as file:
        for spec in specs:
            source = str(spec.origin)
            state = _state(source)
            if state is None or spec.name in rows:
                continue
            # Not by the loader that loaded the module: the source may have changed since then.
            code = marshal.dumps(SourceFileLoader(spec.name, source).get_code(spec.name))
            is_package = spec.submodule_search_locations is not None
            rows[spec.name] = (source, spec.cached or source, is_package, *state, file.tell(), len(code))
            file.write(code)
        index = marshal.dumps((_setting(), rows))
        file.write(index + len(index).to_bytes(LENGTH_BYTES, "little"))
    os.replace(part, path)


def _setting() -> tuple[int, int, tuple[str, ...]]:
    """What must be as it was: the Python, its level of optimization, and where it looks for modules."""
    searched = sys.path if sys.flags.safe_path else sys.path[1:]  # the first is where a program lies or runs
    return sys.hexversion, sys.flags.optimize, tuple(searched)


def _state(source: str) -> tuple[int, int] | None:
    """Time and size of a file as a ``.pyc`` keeps them; None if there is none."""
    try:
        found = os.stat(source)
    except OSError:
        return None
    return int(found.st_mtime) & MASK, found.st_size & MASK
