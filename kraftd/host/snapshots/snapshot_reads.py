"""Reads pieces of snapshots for downloads: off the event loop, and with a limit on their bytes.

A replica may request any size, and gets what the memory limit allows. A piece may be shorter than the
request, so if many replicas request much, each gets less.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.host.ports import WorkThreads
    from kraftd.host.storage import Storage

MAX_BYTES = 16 << 20  # in one answer
MAX_TOTAL_BYTES = 64 << 20  # of all reads under way
MIN_BYTES = 64 << 10  # so that every download makes progress


class PieceRead(Protocol):
    """An effect that requests up to max_bytes of a snapshot from position on."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch: ...

    @property
    def position(self) -> int: ...

    @property
    def max_bytes(self) -> int: ...


class SnapshotReads:
    """Performs effects that request pieces: `done` gets the effect and its bytes, `failed` the effect and the
    error.
    """

    def __init__(
        self,
        storage: Storage,
        work_threads: WorkThreads,
        now_ms: Callable[[], int],
        done: Callable[[Any, bytes], object],
        failed: Callable[[Any, Exception], object],
    ) -> None:
        self._storage = storage
        self._work_threads = work_threads
        self._now_ms = now_ms
        self._done = done
        self._failed = failed
        self.reading_bytes = 0

    def begin(self, effect: PieceRead) -> None:
        """Read a piece. That part of the file is probably not cached, so the read may be slow."""
        self._storage.snapshot_reads[effect.snapshot_id] = self._now_ms()
        room = max(MIN_BYTES, MAX_TOTAL_BYTES - self.reading_bytes)
        size_bytes = min(effect.max_bytes, MAX_BYTES, room)
        self.reading_bytes += size_bytes
        self._work_threads.run(
            partial(self._storage.read_snapshot, effect.snapshot_id, effect.position, size_bytes),
            partial(self._read, effect, size_bytes),
            partial(self._unreadable, effect, size_bytes),
        )

    def _read(self, effect: PieceRead, size_bytes: int, data: bytes) -> None:
        self.reading_bytes -= size_bytes
        self._done(effect, data)

    def _unreadable(self, effect: PieceRead, size_bytes: int, error: Exception) -> None:
        self.reading_bytes -= size_bytes
        self._failed(effect, error)

    def __repr__(self) -> str:
        return f"<SnapshotReads {self.reading_bytes} bytes>"
