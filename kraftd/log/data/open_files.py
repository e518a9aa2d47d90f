"""A bounded number of open files of all logs: the one that was used longest ago is closed for a new one."""

from __future__ import annotations

from kraftd.log.disk import Disk, File

DEFAULT_MAX_OPEN_FILES = 1000


class OpenFiles:
    """Files by path, for one thread. Another thread opens its own."""

    def __init__(self, disk: Disk, max_files: int = DEFAULT_MAX_OPEN_FILES) -> None:
        self._disk = disk
        self._max_files = max_files
        self._files: dict[str, File] = {}  # the one used last is at the end
        self._by_directory: dict[str, set[str]] = {}

    def __repr__(self) -> str:
        return f"<OpenFiles {len(self._files)} of {self._max_files}>"

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: str, *, create: bool = False) -> File:
        """The open file of a path. Raises FileNotFoundError unless create, StorageError."""
        file = self._files.pop(path, None)
        if file is None:
            while len(self._files) >= self._max_files:
                self.forget(next(iter(self._files)))
            file = self._disk.open(path, create=create)
            self._by_directory.setdefault(_directory(path), set()).add(path)
        self._files[path] = file
        return file

    def forget(self, path: str) -> None:
        """Close the file of a path, if it is open."""
        file = self._files.pop(path, None)
        if file is not None:
            directory = _directory(path)
            paths = self._by_directory[directory]
            paths.discard(path)
            if not paths:
                del self._by_directory[directory]
            file.close()

    def forget_below(self, directory: str) -> None:
        """Close all files of a directory."""
        for path in list(self._by_directory.get(directory, ())):
            self.forget(path)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._by_directory.clear()


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
