"""Threads that wait for the disk in place of the event loop.

Group commit without linger: records appended during one sync go with the next. The consensus core requests
one at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from time import monotonic_ns
from typing import Any, TypeVar

from kraftd.histogram import Histogram
from kraftd.host.disk_job import RETRY_MS, DiskJob
from kraftd.log.errors import StorageError
from kraftd.log_dirs.jobs import attempt

HUNG_S = 30.0  # the longest wait for a disk at the end of the process

T = TypeVar("T")

# Flushes at once at the end of the process: a disk commits those that wait for it together.
FLUSHES_AT_ONCE = 16


def run_together(jobs: Sequence[Callable[[], None]]) -> list[StorageError | None]:
    """Run jobs in threads, and wait for all; the failure of each, or None."""
    with ThreadPoolExecutor(FLUSHES_AT_ONCE, "flush") as pool:
        return list(pool.map(attempt, jobs))


class RealDiskThread:
    """Does jobs one after the other in a thread, which starts with the first. `notify` calls functions on the
    event loop.

    Any error but a full disk goes to `failed`, and ends the jobs.
    """

    def __init__(
        self,
        name: str,
        notify: Callable[..., object],
        failed: Callable[[BaseException], None],
        retry_s: float = RETRY_MS / 1000,
    ) -> None:
        self._name = name
        self._notify = notify
        self._failed = failed
        self._retry_s = retry_s
        self.times = Histogram()  # of the jobs, in nanoseconds, without waits for space
        self._stopping = threading.Event()
        self._jobs: SimpleQueue[DiskJob[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, job: DiskJob[Any]) -> None:
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Do the waiting jobs, except those that a full disk prevents, and end the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(HUNG_S)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                began_ns = monotonic_ns()
                while not job.attempt(self._notify):
                    if self._stopping.wait(self._retry_s):
                        return
                    began_ns = monotonic_ns()
                self.times.note(monotonic_ns() - began_ns)
            except BaseException as error:  # the event loop is notified, and ends the process
                self._notify(self._failed, error)
                return

    def __repr__(self) -> str:
        return f"<RealDiskThread {self._name}, about {self._jobs.qsize()} jobs>"


class LoopThreads:
    """The event loop's pool of threads: jobs in no order, with their results on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[Exception], object]
    ) -> None:
        def over(future: asyncio.Future[T]) -> None:
            try:
                result = future.result()
            except Exception as error:
                failed(error)
            else:
                done(result)

        self._loop.run_in_executor(None, work).add_done_callback(over)

    def __repr__(self) -> str:
        return "<LoopThreads>"
