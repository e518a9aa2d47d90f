"""The thread that writes a leader's snapshot to disk, so that the loop never waits for it.

What the core wants done with a download is done in its order, one thing at a time. Who sends faster than the
disk writes is not asked for more: answers wait here until there is less to write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.raft import effects, events
from kraftd.runtime.syncer import HUNG_S, RETRY_S
from kraftd.server.snapshot_download import SnapshotDownload
from kraftd.storage.errors import CorruptStorage, DiskFull

MOST_WAITING_BYTES = 8 << 20
Outcome = events.SnapshotFinished | events.SnapshotRefused
Job = Callable[[], Outcome | None]


class Downloader:
    """Performs BeginSnapshot, WriteSnapshot, FinishSnapshot and AbandonSnapshot of one node.

    `step` is given SnapshotFinished or SnapshotRefused, and the answers that waited; `failed` any error but
    that of a full disk, on which a write is tried until there is room.
    """

    def __init__(
        self,
        download: SnapshotDownload,
        call_soon: Callable[..., object],
        step: Callable[[Any], None],
        failed: Callable[[BaseException], None],
        log: Any,
    ) -> None:
        self.download = download
        self._call_soon = call_soon
        self._step = step
        self._failed = failed
        self._log = log
        self.bytes = 0  # taken in since the start, for metrics, as are the next two
        self.finished = 0
        self.refused = 0
        self._waiting_bytes = 0  # not written yet
        self._held: events.ResponseReceived | None = None
        self._jobs: SimpleQueue[tuple[Job, int] | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None  # most processes never download anything

    # -- what the loop calls

    def begin(self, effect: effects.BeginSnapshot) -> None:
        self._put(lambda: self.download.begin(effect))

    def write(self, effect: effects.WriteSnapshot) -> None:
        self.bytes += len(effect.data)
        self._put(lambda: self.download.write(effect), len(effect.data))

    def finish(self, effect: effects.FinishSnapshot) -> None:
        self._put(lambda: self._finish(effect))

    def abandon(self, effect: effects.AbandonSnapshot) -> None:
        self._put(lambda: self.download.abandon(effect))

    def received(self, event: events.ResponseReceived) -> None:
        """Pass an answer of another controller on; a piece of a snapshot only once the last are written.

        One piece is asked for at a time: what comes while one waits here is asked for anew, which the core
        does when it has heard nothing for too long.
        """
        if type(event.message) is FetchSnapshotResponse and self._waiting_bytes > MOST_WAITING_BYTES:
            self._held = event
        else:
            self._step(event)

    def stop(self) -> None:
        """Do what waits, but for what a full disk has no room for, and end the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(HUNG_S)

    # -- the thread's part

    def _put(self, job: Job, size_bytes: int = 0) -> None:
        self._waiting_bytes += size_bytes
        self._jobs.put((job, size_bytes))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kraftd-download", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (next_ := self._jobs.get()) is not None:
            job, size_bytes = next_
            try:
                event = self._patiently(job)
            except DiskFull:
                return  # this ends meanwhile
            except BaseException as error:  # told to the loop, which ends the process
                self._call_soon(self._failed, error)
                return
            if event is not None or size_bytes:
                self._call_soon(self._done, event, size_bytes)

    def _patiently(self, job: Job) -> Outcome | None:
        """What comes of a job, however often a full disk makes it start over. Raises DiskFull once this
        ends."""
        full = False
        while True:
            try:
                return job()
            except DiskFull as error:
                if not full:
                    self._call_soon(self._say_full, str(error))
                full = True
                if self._stopping.wait(RETRY_S):
                    raise

    def _finish(self, effect: effects.FinishSnapshot) -> Outcome | None:
        try:
            return self.download.finish(effect)
        except CorruptStorage as error:
            self._call_soon(self._say_damaged, str(error))
            refused = self.download.refuse()
            return None if refused is None else events.SnapshotRefused(refused)

    # -- back on the loop

    def _done(self, event: Outcome | None, size_bytes: int) -> None:
        if type(event) is events.SnapshotFinished:
            self.finished += 1
            self.download.named(event)
        elif event is not None:
            self.refused += 1
        if event is not None:
            self._step(event)
        self._waiting_bytes -= size_bytes
        held = self._held
        if held is not None and self._waiting_bytes <= MOST_WAITING_BYTES:
            self._held = None
            self._step(held)

    def _say_full(self, error: str) -> None:
        self._log.error("the disk is full: the snapshot of the leader waits for room", error=error)

    def _say_damaged(self, error: str) -> None:
        self._log.warning("the snapshot that came from the leader is damaged", error=error)

    def __repr__(self) -> str:
        return f"<Downloader {self.download!r}, {self._waiting_bytes} bytes to write>"
