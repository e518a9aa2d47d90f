"""A Disk in memory that can crash: unsynced changes may be lost, torn or kept.

Used by simulation and tests. Every change counts as one operation. crash_at is the number of the operation
before which the process crashes; from then on every call raises SimulatedCrash. after_crash returns the disk
that a restarted process finds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kraftd.log.errors import DirectoryLocked, DiskFull, StorageFailure

Choose = Callable[[int], int]
"""Given n, a number below n: which of the n possible outcomes of a crash happened."""


def nothing_unsynced_survives(outcomes: int) -> int:
    """A machine crash before anything was written back."""
    return 0


def everything_survives(outcomes: int) -> int:
    """A process is killed: the operating system still has all writes."""
    return outcomes - 1


def names_survive_without_data() -> Choose:
    """A machine crash after directories, but no files, were written back; to be used for one after_crash."""
    choices = []

    def choose(outcomes: int) -> int:
        choices.append(outcomes)
        return outcomes - 1 if len(choices) == 1 else 0  # the first choice is about names

    return choose


class SimulatedCrash(BaseException):
    """The process is gone. Not an Exception, so that no handler mistakes it for an error."""


@dataclass
class _Inode:
    """A file's bytes as the process sees them, its durable bytes, and the changes between the two."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)  # (position, data) or (size, None)
    rotten: list[int] = field(default_factory=list)  # positions of flipped bits
    durably_rotten: list[int] = field(default_factory=list)


def _apply(data: bytearray, position: int, change: bytes | None) -> None:
    if change is None:
        del data[position:]
        data.extend(bytes(max(0, position - len(data))))
    else:
        data.extend(bytes(max(0, position - len(data))))
        data[position : position + len(change)] = change


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, inode: _Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode

    def size_bytes(self) -> int:
        self._disk.check_alive()
        return len(self._inode.data)

    def read(self, position: int, size_bytes: int) -> bytes:
        self._disk.check_alive()
        return bytes(self._inode.data[position : position + size_bytes])

    def read_cached(self, position: int, size_bytes: int) -> bytes | memoryview | None:
        return self.read(position, size_bytes) if self._disk.is_cached else None

    def write_views(self, position: int, views: Sequence[bytes | memoryview]) -> None:
        self.write(position, b"".join(views))

    def write(self, position: int, data: bytes | memoryview) -> None:
        self._disk.step("write", self.path)
        fits = self._disk.room_for(position + len(data) - len(self._inode.data))
        kept = data if fits is None else data[: max(0, len(data) - fits)]
        if kept:
            _apply(self._inode.data, position, bytes(kept))
            self._inode.unsynced.append((position, bytes(kept)))
        if fits is not None:
            raise DiskFull(f"cannot write to {self.path}: no space left on device. Make room on that disk")

    def truncate(self, size_bytes: int) -> None:
        self._disk.step("truncate", self.path)
        _apply(self._inode.data, size_bytes, None)
        self._inode.rotten = [each for each in self._inode.rotten if each < size_bytes]
        self._inode.unsynced.append((size_bytes, None))

    def sync(self) -> None:
        self._disk.step("sync", self.path)
        inode = self._inode
        if inode.rotten:  # flipped bits under unsynced bytes are in no change
            inode.durable[:] = inode.data
        else:  # long files grow by small changes: only those are copied
            for position, change in inode.unsynced:
                _apply(inode.durable, position, change)
        inode.unsynced.clear()
        inode.durably_rotten = inode.rotten

    def close(self) -> None:
        pass


class MemoryLock:
    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locked.discard(self._path)


class MemoryDisk:
    """See the module. fault, if set, is called with (operation, path) before each change, and may raise."""

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        # (path, inode) makes a name, (path, None) removes one; a rename is both, and one change.
        self._unsynced_names: list[list[tuple[str, _Inode | None]]] = []
        self._directories: set[str] = set()
        self.locked: set[str] = set()
        self.operations = 0
        self.crash_at: int | None = None
        self.capacity_bytes: int | None = None
        self.modified: dict[str, int] = {}
        self.is_cached = True  # False: `read_cached` finds nothing
        self.fault: Callable[[str, str], None] | None = None

    def __repr__(self) -> str:
        return f"<MemoryDisk {len(self._names)} files, {self.operations} operations>"

    def check_alive(self) -> None:
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise SimulatedCrash

    def step(self, operation: str, path: str) -> None:
        """Count a change before it happens. Raises SimulatedCrash, or what fault raises."""
        self.operations += 1
        self.check_alive()
        if self.fault is not None:
            self.fault(operation, path)

    def paths(self) -> list[str]:
        """The existing files."""
        return sorted(self._names)

    def durable_bytes(self, path: str) -> bytes:
        """The bytes of a file that survive any loss of power."""
        return bytes(self._names[path].durable)

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """Bit rot: silently change a durable byte."""
        inode = self._names[path]
        inode.data[position] ^= 1 << bit
        inode.durable[position] ^= 1 << bit
        inode.rotten = [*inode.rotten, position]
        inode.durably_rotten = [*inode.durably_rotten, position]

    def rotten_paths(self) -> dict[str, int]:
        """The files with a flipped bit, and the position of the first."""
        return {path: min(inode.rotten) for path, inode in self._names.items() if inode.rotten}

    def room_for(self, growth_bytes: int) -> int | None:
        """None if the bytes fit, else how many are too many."""
        if self.capacity_bytes is None or growth_bytes <= 0:
            return None
        used = sum(len(inode.data) for inode in self._names.values())
        over = used + growth_bytes - self.capacity_bytes
        return over if over > 0 else None

    def after_crash(self, choose: Choose) -> MemoryDisk:
        """The disk once power is back. A prefix of the changes of names survives, and of each file a prefix
        of its unsynced changes. The next write is torn at a byte: the bytes behind that are lost or zero.
        """
        survivor = MemoryDisk()
        survivor._directories = set(self._directories)
        names = dict(self._durable_names)
        for change in self._unsynced_names[: choose(len(self._unsynced_names) + 1)]:
            _rename(names, change)
        inodes: dict[int, _Inode] = {}
        for path, inode in names.items():
            if id(inode) not in inodes:
                data = bytearray(inode.durable)
                kept = choose(len(inode.unsynced) + 1)
                for position, written in inode.unsynced[:kept]:
                    _apply(data, position, written)
                if kept < len(inode.unsynced):
                    position, written = inode.unsynced[kept]
                    if written is not None:
                        torn = choose(len(written))
                        if torn:
                            _apply(data, position, written[:torn])
                            if choose(4) == 1:
                                _apply(data, max(len(data), position + len(written)), None)
                rotten = inode.durably_rotten
                inodes[id(inode)] = _Inode(data, bytearray(data), rotten=rotten, durably_rotten=rotten)
            survivor._names[path] = inodes[id(inode)]
            survivor.make_directory(os.path.dirname(path))
        survivor._durable_names = dict(survivor._names)
        return survivor

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.check_alive()
        if path not in self._names:
            if not create:
                raise FileNotFoundError(path)
            self.step("create", path)
            if self.room_for(1) is not None:
                raise DiskFull(f"cannot open {path}: no space left on device. Make room on that disk")
            self._change_names([(path, _Inode())])
        return MemoryFile(self, path, self._names[path])

    def read_bytes(self, path: str) -> bytes:
        self.check_alive()
        if path not in self._names:
            raise FileNotFoundError(path)
        return bytes(self._names[path].data)

    def exists(self, path: str) -> bool:
        self.check_alive()
        return path in self._names or path in self._directories

    def list_names(self, directory: str) -> list[str]:
        self.check_alive()
        prefix = f"{directory}/"
        start = len(prefix)
        return sorted(
            path[start:] for path in self._names if path.startswith(prefix) and path.find("/", start) < 0
        )

    def list_others(self, directory: str) -> dict[str, str]:
        self.check_alive()
        prefix = f"{directory}/"
        start = len(prefix)
        below = (path for path in self._directories if path.startswith(prefix) and "/" not in path[start:])
        # In order: a set's order depends on the hashes of strings, and a seed of the simulator is one world.
        return dict.fromkeys(sorted(path[start:] for path in below), "a directory")

    def size_bytes(self, path: str) -> int:
        self.check_alive()
        if path not in self._names:
            raise FileNotFoundError(path)
        return len(self._names[path].data)

    def modified_ms(self, path: str) -> int:
        """The time of the last write, which tests set in `modified`. A directory has that of any change."""
        self.check_alive()
        return self.modified.get(path, self.operations if path in self._directories else 0)

    def space_bytes(self, path: str) -> tuple[int, int]:
        self.check_alive()
        total = 1 << 40 if self.capacity_bytes is None else self.capacity_bytes
        return total, max(0, total - sum(len(inode.data) for inode in self._names.values()))

    def make_directory(self, path: str, *, durably: bool = True) -> None:
        self.check_alive()
        while path not in ("", "/"):
            self._directories.add(path)
            path = os.path.dirname(path)

    def rename(self, source: str, target: str) -> None:
        self.step("rename", target)
        if source in self._directories:
            self._rename_directory(source, target)
            return
        if source not in self._names:
            raise FileNotFoundError(source)
        self._change_names([(target, self._names[source]), (source, None)])

    def _rename_directory(self, source: str, target: str) -> None:
        prefix = f"{source}/"
        self._directories = {
            target + path[len(source) :] if path == source or path.startswith(prefix) else path
            for path in self._directories
        }
        # The name of a directory is durable at once, as when it is made.
        for names in (self._names, self._durable_names):
            for path in [path for path in names if path.startswith(prefix)]:
                names[target + path[len(source) :]] = names.pop(path)
        self._unsynced_names = [
            [
                (target + path[len(source) :] if path.startswith(prefix) else path, inode)
                for path, inode in change
            ]
            for change in self._unsynced_names
        ]

    def remove_directory(self, path: str) -> None:
        self.check_alive()
        if path in self._directories:
            if self.list_names(path) or self.list_others(path):
                raise StorageFailure(f"cannot remove the directory {path}: directory not empty")
            self.step("remove", path)
            self._directories.discard(path)

    def remove(self, path: str) -> None:
        if path in self._names:
            self.step("remove", path)
            self._change_names([(path, None)])

    def set_read_only(self, path: str) -> None:
        self.check_alive()

    def sync_directory(self, path: str) -> None:
        self.step("sync", path)
        # Changes of names are journalled in order, so earlier ones of other directories become durable too.
        self._durable_names = dict(self._names)
        self._unsynced_names.clear()

    def lock(self, path: str) -> MemoryLock:
        self.check_alive()
        if path in self.locked:
            raise DirectoryLocked(f"{os.path.dirname(path)} is in use by another process")
        self.locked.add(path)
        return MemoryLock(self, path)

    def _change_names(self, change: list[tuple[str, _Inode | None]]) -> None:
        _rename(self._names, change)
        self._unsynced_names.append(change)


def _rename(names: dict[str, _Inode], change: list[tuple[str, _Inode | None]]) -> None:
    for path, inode in change:
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode
