"""Disks that fill up and disks that fail, for one running process."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kafka.process import Process, wait_until

_CHUNK = bytes(1 << 16)


def lacking() -> str | None:
    """Why this machine cannot have small disks; None if it can."""
    if os.geteuid() != 0:
        return "mounting a small disk needs root"
    return None if shutil.which("mount") else "no mount on the PATH"


class SmallDisk:
    """A tmpfs of a few megabytes at a path, for the time of a `with` block."""

    def __init__(self, path: Path, size: str = "48m") -> None:
        self.path, self._size = path, size

    def __repr__(self) -> str:
        return f"<SmallDisk {self.path} {self._size}>"

    def __enter__(self) -> SmallDisk:
        self.path.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._size}", "tmpfs", self.path], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        # Lazily: it goes for good when the last process that has a file of it open is gone.
        subprocess.run(["umount", "--lazy", self.path], check=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte is free for the time of the block."""
        filler = self.path / "filler"
        with open(filler, "wb", buffering=0) as file:
            for size in (len(_CHUNK), 1):
                try:
                    while file.write(_CHUNK[:size]):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
        try:
            yield
        finally:
            filler.unlink()


def strace_lacking() -> str | None:
    return None if shutil.which("strace") else "no strace on the PATH"


@contextmanager
def failing_fsync(process: Process, *, error: str = "EIO", delay_us: int = 0) -> Iterator[None]:
    """Every fsync of a running process fails, or with a delay is only late, for the time of the block."""
    calls = "fsync,fdatasync"
    how = f"delay_enter={delay_us}" if delay_us else f"error={error}"
    log = process.home / "strace.txt"
    command = ["strace", "-f", "-o", log, "-p", str(process.pid), "-e", f"trace={calls}"]
    with open(process.home / "strace-errors.txt", "wb") as errors:
        tracer = subprocess.Popen(
            [*command, "-e", f"inject={calls}:{how}"], stdin=subprocess.DEVNULL, stderr=errors
        )
    try:
        wait_until(lambda: _is_traced(process) or tracer.poll() is not None, "strace is attached")
        assert tracer.poll() is None, (process.home / "strace-errors.txt").read_text()
        yield
    finally:
        tracer.terminate()
        tracer.wait(30)


def _is_traced(process: Process) -> bool:
    """Whether every thread of a process has a tracer."""
    statuses = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/status")]
    return all("TracerPid:\t0\n" not in status for status in statuses)
