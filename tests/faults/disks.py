"""Disks that fill up and disks that fail, for one running process."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.process import Process, wait_until

_CHUNK = bytes(1 << 16)


def lacking() -> str | None:
    """The reason why this machine cannot have small disks; None if it can."""
    if os.geteuid() != 0:
        return "mounting a small disk needs root"
    return None if shutil.which("mount") else "no mount on the PATH"


class SmallDisk:
    """A tmpfs of a few megabytes at a path, mounted during a `with` block."""

    def __init__(self, path: Path, size: str = "48m") -> None:
        self.path, self._size = path, size

    def __repr__(self) -> str:
        return f"<SmallDisk {self.path} {self._size}>"

    def __enter__(self) -> SmallDisk:
        self.path.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._size}", "tmpfs", self.path], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        # Lazily: the kernel removes it when the last process with an open file in it ends.
        subprocess.run(["umount", "--lazy", self.path], check=True)

    @contextmanager
    def full(self, but_bytes: int = 0) -> Iterator[None]:
        """Leave only this many bytes free during the block."""
        filler = self.path / "filler"
        with open(filler, "wb", buffering=0) as file:
            for size in (len(_CHUNK), 1):
                try:
                    while file.write(_CHUNK[:size]):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
            if but_bytes:
                file.truncate(max(0, file.tell() - but_bytes))
        try:
            yield
        finally:
            filler.unlink()


def fsync_lacking(way: str) -> str | None:
    """The reason why fsync cannot be made to fail in this way here; None if it can."""
    tool = "strace" if way == "strace" else "gcc"
    return None if shutil.which(tool) else f"no {tool} on the PATH"


def preload_faults(process: Process, folder: Path) -> None:
    """Make a process that has not started yet check a file before every write and fsync."""
    library = folder / "faulty_disk.so"
    if not library.exists():
        source = Path(__file__).with_name("faulty_disk.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    process.environment |= {"LD_PRELOAD": str(library), "KRAFTD_DISK_FAULT": str(_fault_file(process))}


def _fault_file(process: Process) -> Path:
    return process.home / "disk-fault"


@contextmanager
def faulty_files(process: Process, error: int, calls: str, suffix: str) -> Iterator[None]:
    """Writes ("write") or fsyncs ("sync") of files with such names fail during the block.

    This concerns a process that `preload_faults` has prepared and all of its children.
    """
    with _fault(process, f"{error} {calls} {suffix}"):
        yield


@contextmanager
def _fault(process: Process, text: str) -> Iterator[None]:
    file = _fault_file(process)
    draft = file.with_suffix(".new")
    draft.write_text(text)
    draft.rename(file)
    try:
        yield
    finally:
        file.unlink()


@contextmanager
def failing_fsync(process: Process, way: str, *, delay_us: int = 0) -> Iterator[None]:
    """During the block every fsync of a running process fails or, with a delay, is late.

    This is done by `strace`, or by `preload` if the process was prepared for it.
    """
    if way == "strace":
        with _traced_fsync(process, f"delay_enter={delay_us}" if delay_us else "error=EIO"):
            yield
        return
    with _fault(process, str(-delay_us or errno.EIO)):
        yield


@contextmanager
def _traced_fsync(process: Process, how: str) -> Iterator[None]:
    calls = "fsync,fdatasync"
    log = process.home / "strace.txt"
    command = ["strace", "-f", "-o", log, "-p", str(process.pid), "-e", f"trace={calls}"]
    with open(process.home / "strace-errors.txt", "wb") as errors:
        tracer = subprocess.Popen(
            [*command, "-e", f"inject={calls}:{how}"], stdin=subprocess.DEVNULL, stderr=errors
        )
    try:
        wait_until(lambda: _is_traced(process) or tracer.poll() is not None, "strace is attached")
        # The process may have exited by now: that was its first failed fsync.
        assert tracer.poll() is None or not process.alive, (process.home / "strace-errors.txt").read_text()
        yield
    finally:
        tracer.terminate()
        tracer.wait(30)


def _is_traced(process: Process) -> bool:
    """Return whether every thread of a process has a tracer."""
    statuses = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/status")]
    return all("TracerPid:\t0\n" not in status for status in statuses)
