"""A disk over another one, with its changes kept in memory: it rehearses a start on real files."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.log.disk import Disk, File, Lock


class OverlayFile:
    """A file whose writes and truncations stay in memory, apart from the file below. See File."""

    def __init__(self, path: str, below: File | None) -> None:
        self.path = path
        self._below = below
        self._kept_bytes = (
            below.size_bytes() if below is not None else 0
        )  # bytes of the file below that still count
        self._size_bytes = self._kept_bytes
        self._written: list[tuple[int, bytes]] = []

    def __repr__(self) -> str:
        return f"<OverlayFile {self.path}, {len(self._written)} writes>"

    def size_bytes(self) -> int:
        return self._size_bytes

    def read(self, position: int, size_bytes: int) -> bytes:
        stop = min(position + size_bytes, self._size_bytes)
        if stop <= position:
            return b""
        base = b""
        if self._below is not None and position < self._kept_bytes:
            base = self._below.read(position, min(stop, self._kept_bytes) - position)
        if not self._written and len(base) == stop - position:
            return base
        data = bytearray(base.ljust(stop - position, b"\0"))
        for start, piece in self._written:
            first, last = max(start, position), min(start + len(piece), stop)
            if first < last:
                data[first - position : last - position] = piece[first - start : last - start]
        return bytes(data)

    def read_cached(self, position: int, size_bytes: int) -> bytes | memoryview | None:
        return self.read(position, size_bytes)

    def write_views(self, position: int, views: Sequence[bytes | memoryview]) -> None:
        self.write(position, b"".join(views))

    def write(self, position: int, data: bytes | memoryview) -> None:
        self._written.append((position, bytes(data)))
        self._size_bytes = max(self._size_bytes, position + len(data))

    def truncate(self, size_bytes: int) -> None:
        self._kept_bytes = min(self._kept_bytes, size_bytes)
        self._written = [(at, piece[: size_bytes - at]) for at, piece in self._written if at < size_bytes]
        self._size_bytes = size_bytes

    def sync(self) -> None:
        pass

    def close(self) -> None:
        """Do nothing: the file stays open for later calls with its path."""

    def release(self) -> None:
        if self._below is not None:
            self._below.close()


class NoLock:
    """A lock on nothing: a rehearsal does not exclude other processes from the directory."""

    def release(self) -> None:
        pass


class OverlayDisk:
    """See Disk. Nothing below changes; `close` closes the files that were opened."""

    def __init__(self, below: Disk) -> None:
        self._below = below
        self._files: dict[str, OverlayFile | None] = {}  # None: removed

    def __repr__(self) -> str:
        return f"<OverlayDisk of {len(self._files)} files>"

    def close(self) -> None:
        for file in self._files.values():
            if file is not None:
                file.release()
        self._files.clear()

    def open(self, path: str, *, create: bool = False) -> File:
        found = self._files.get(path)
        if found is not None:
            return found
        if path in self._files or not self._below.exists(path):
            if not create:
                raise FileNotFoundError(path)
            made = OverlayFile(path, None)
        else:
            made = OverlayFile(path, self._below.open(path))
        self._files[path] = made
        return made

    def read_bytes(self, path: str) -> bytes:
        if path in self._files:
            file = self.open(path)
            return file.read(0, file.size_bytes())
        return self._below.read_bytes(path)

    def exists(self, path: str) -> bool:
        return self._files[path] is not None if path in self._files else self._below.exists(path)

    def list_names(self, directory: str) -> list[str]:
        names = set(self._below.list_names(directory))
        for path, file in self._files.items():
            parent, _, name = path.rpartition("/")
            if parent == directory:
                if file is None:
                    names.discard(name)
                else:
                    names.add(name)
        return sorted(names)

    def list_others(self, directory: str) -> dict[str, str]:
        return self._below.list_others(directory)

    def size_bytes(self, path: str) -> int:
        return self.open(path).size_bytes() if path in self._files else self._below.size_bytes(path)

    def modified_ms(self, path: str) -> int:
        return self._below.modified_ms(path)

    def space_bytes(self, path: str) -> tuple[int, int]:
        return self._below.space_bytes(path)

    def make_directory(self, path: str, *, durably: bool = True) -> None:
        pass

    def remove_directory(self, path: str) -> None:
        pass

    def rename(self, source: str, target: str) -> None:
        self.open(source)
        self._files[target] = self._files[source]
        self._files[source] = None

    def remove(self, path: str) -> None:
        self._files[path] = None

    def set_read_only(self, path: str) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass

    def lock(self, path: str) -> Lock:
        return NoLock()
