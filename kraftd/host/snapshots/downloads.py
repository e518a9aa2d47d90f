"""The download of a leader's snapshot: a thread performs the core's effects for it, in order.

If a leader sends faster than the disk writes, its answers wait here until enough is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kraftd.ground.effect import Effect
from kraftd.host.disk_job import DiskJob
from kraftd.log.errors import CorruptStorage, DiskFull
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.named_tuple import NamedTuple
from kraftd.raft import effects, events
from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.host.ports import DiskThread, Log
    from kraftd.host.snapshots.snapshot_download import SnapshotDownload

MAX_WAITING_BYTES = 8 << 20


class Refused(NamedTuple):
    """A download that was damaged, and deleted."""

    snapshot_id: OffsetAndEpoch | None
    text: str


Outcome = events.SnapshotFinished | Refused


class Downloads:
    """Performs BeginSnapshot, WriteSnapshot, FinishSnapshot and AbandonSnapshot of one replica.

    `step` gets SnapshotFinished or SnapshotRefused, and the answers that waited.
    """

    def __init__(
        self,
        download: SnapshotDownload,
        thread: DiskThread,
        step: Callable[[Any], None],
        log: Log,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.download = download
        self._thread = thread
        self._step = step
        self._log = log
        self._max_waiting_bytes = max_waiting_bytes
        self.under_way: OffsetAndEpoch | None = None
        self.bytes = 0  # received since the start, for metrics, like the next two
        self.finished = 0
        self.refused = 0
        self._waiting_bytes = 0  # not written yet
        self._waiting_answer: events.ResponseReceived | None = None

    def begin(self, effect: effects.BeginSnapshot) -> None:
        self.under_way = effect.snapshot_id
        self._run(effect, partial(self.download.begin, effect), _nothing)

    def write(self, effect: effects.WriteSnapshot) -> None:
        size_bytes = len(effect.data)
        self.bytes += size_bytes
        self._waiting_bytes += size_bytes
        self._run(effect, partial(self.download.write, effect), lambda _: self._written(size_bytes))

    def finish(self, effect: effects.FinishSnapshot) -> None:
        self._run(effect, partial(self._finish, effect), self._finished, syncs=True)

    def abandon(self, effect: effects.AbandonSnapshot) -> None:
        self.under_way = None
        self._run(effect, partial(self.download.abandon, effect), _nothing)

    def received(self, event: events.ResponseReceived) -> None:
        """Pass on an answer of another replica; a piece of a snapshot only after the previous ones are
        written.

        The core requests one piece at a time. A piece that arrives while one waits here is a repeated
        request's, which the core sends after a timeout.
        """
        if type(event.message) is FetchSnapshotResponse and self._waiting_bytes > self._max_waiting_bytes:
            self._waiting_answer = event
        else:
            self._step(event)

    @property
    def keeps_waiting(self) -> bool:
        """Return whether an answer of the leader waits for the disk."""
        return self._waiting_answer is not None

    def _run(
        self,
        effect: Effect,
        work: Callable[[], Any],
        done: Callable[[Any], object],
        *,
        syncs: bool = False,
    ) -> None:
        self._thread.run(
            DiskJob(work, done, filled=self._filled, has_room=_has_room, effect=effect, syncs=syncs)
        )

    def _finish(self, effect: effects.FinishSnapshot) -> Outcome:
        """In the thread."""
        try:
            return self.download.finish(effect)
        except CorruptStorage as error:
            return Refused(self.download.refuse(), str(error))

    def _written(self, size_bytes: int) -> None:
        self._waiting_bytes -= size_bytes
        answer = self._waiting_answer
        if answer is not None and self._waiting_bytes <= self._max_waiting_bytes:
            self._waiting_answer = None
            self._step(answer)

    def _finished(self, outcome: Outcome) -> None:
        self.under_way = None
        if isinstance(outcome, events.SnapshotFinished):
            self.finished += 1
            self.download.named(outcome)
            self._step(outcome)
            return
        self._log.warning("the snapshot that came from the leader is damaged", error=outcome.text)
        if outcome.snapshot_id is not None:
            self.refused += 1
            self._step(events.SnapshotRefused(outcome.snapshot_id))

    def _filled(self, error: DiskFull) -> None:
        self._log.error("the disk is full: the snapshot of the leader waits for room", error=str(error))

    def __repr__(self) -> str:
        return f"<Downloads of {self.under_way}, {self._waiting_bytes} bytes to write>"


def _nothing(_: Any) -> None:
    """Do nothing: no caller waits for it."""


def _has_room() -> None:
    """Do nothing: the next job reports enough."""
