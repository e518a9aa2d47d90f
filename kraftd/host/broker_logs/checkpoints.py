"""Writes the checkpoints of log directories, in threads. What they say of the logs is collected in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kraftd.host.ports import Ports
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import WriteJob

_DONE = object()


class Checkpoints:
    """`failed` is called with the path of a directory whose checkpoint could not be written, and why."""

    def __init__(
        self, directories: LogDirectories, ports: Ports, failed: Callable[[str, Exception], None]
    ) -> None:
        self._directories = directories
        self._ports = ports
        self._failed = failed
        self._left: set[str] = set()  # directories that logs have left, until their checkpoints are written
        self._is_writing_left = False

    def __repr__(self) -> str:
        return f"<Checkpoints, {len(self._left)} directories left>"

    def write(self, jobs: Iterable[WriteJob]) -> None:
        """Write some."""
        for job in jobs:
            failed = partial(self._not_written, job.log_directory)
            self._ports.work_threads.run(job.run, lambda _: None, failed)

    def _not_written(self, path: str, error: Exception) -> None:
        self._directories.resources.uncheckpointed.add(path)  # the disk may only have been full
        self._failed(path, error)

    def write_changed(self) -> Iterator[None]:
        """Write the recovery points and log starts of the directories in which some have changed."""
        for path in self._directories.online:
            if path in self._directories.resources.uncheckpointed:
                yield from self._write_of(path)

    def write_soon(self, path: str) -> None:
        """Write those of a directory, once for all logs that leave it together."""
        self._left.add(path)
        if not self._is_writing_left:
            self._is_writing_left = True
            self._ports.timer.call_soon(self._go_on, self._write_left())

    def _write_left(self) -> Iterator[None]:
        while self._left:
            path = min(self._left)
            self._left.discard(path)
            yield from self._write_of(path)
        self._is_writing_left = False

    def _write_of(self, path: str) -> Iterator[None]:
        self.write((yield from self._directories.checkpoints_in_slices(path)))

    def _go_on(self, slices: Iterator[None]) -> None:
        if next(slices, _DONE) is not _DONE:
            self._ports.timer.call_soon(self._go_on, slices)
