"""The one thread that waits for the disk, so that the loop never does.

Group commit without linger: while one sync runs, what is appended goes with the next. The consensus core
asks for one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic_ns
from typing import Protocol

from kraftd.histogram import Histogram
from kraftd.storage.errors import DiskFull

HUNG_S = 30.0  # a disk that does not answer for so long is not waited for
RETRY_S = 0.5  # a full disk is tried again so often


class Syncable(Protocol):
    def sync(self) -> int: ...


class Syncer:
    """Runs `log.sync()` when asked; `done(end_offset)` or `failed(error)` is called by way of `call_soon`.

    On a full disk `filled(error)` is called once, and the same sync tried until there is room or this ends;
    `has_room()` comes before its `done`.
    """

    def __init__(
        self,
        log: Syncable,
        call_soon: Callable[..., object],
        done: Callable[[int], None],
        failed: Callable[[BaseException], None],
        filled: Callable[[DiskFull], None],
        has_room: Callable[[], None],
    ) -> None:
        self._log = log
        self._call_soon = call_soon
        self._done = done
        self._failed = failed
        self._filled = filled
        self._has_room = has_room
        self.times = Histogram()  # of the syncs that were done, in nanoseconds
        self._stopping = threading.Event()
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="kraftd-sync", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Sync what has been appended so far."""
        self._asked.put(True)

    def stop(self) -> None:
        """Finish the sync that is under way, if one is, and end the thread."""
        self._stopping.set()
        self._asked.put(False)
        self._thread.join(HUNG_S)

    def _run(self) -> None:
        while self._asked.get():
            try:
                end_offset = self._sync()
            except BaseException as error:  # told to the loop, which ends the process
                self._call_soon(self._failed, error)
                return
            if end_offset is None:
                return
            self._call_soon(self._done, end_offset)

    def _sync(self) -> int | None:
        """One sync, however often a full disk makes it start over; None when this ends meanwhile."""
        full = False
        while True:
            began_ns = monotonic_ns()
            try:
                end_offset = self._log.sync()
            except DiskFull as error:
                if not full:
                    self._call_soon(self._filled, error)
                full = True
                if self._stopping.wait(RETRY_S):
                    return None
            else:
                self.times.note(monotonic_ns() - began_ns)
                if full:
                    self._call_soon(self._has_room)
                return end_offset
