"""Pieces of snapshots read for whoever downloads them: off the loop, and never many bytes at a time.

How much a replica asks for is its own affair; what it is given is not. A piece may be any part of what was
asked for, so many who ask for much get less each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kraftd.server.effects import AnswerSnapshot
from kraftd.storage.errors import StorageError

if TYPE_CHECKING:
    from kraftd.server.storage import Storage

MOST_BYTES = 16 << 20  # in one answer
MOST_BYTES_AT_ONCE = 64 << 20  # in all that are being read
FEWEST_BYTES = 64 << 10  # so that everybody gets on


class SnapshotReads:
    """Performs AnswerSnapshot: `done` gets the effect and its bytes, `failed` the effect and why not."""

    def __init__(
        self,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        done: Callable[[AnswerSnapshot, bytes], object],
        failed: Callable[[AnswerSnapshot, Exception], object],
    ) -> None:
        self._storage = storage
        self._loop = loop
        self._now_ms = now_ms
        self._done = done
        self._failed = failed
        self.reading_bytes = 0

    def begin(self, effect: AnswerSnapshot) -> None:
        """Read a piece. Nobody has read that part of the file for long: it may take its time."""
        self._storage.snapshot_reads[effect.snapshot_id] = self._now_ms()
        room = max(FEWEST_BYTES, MOST_BYTES_AT_ONCE - self.reading_bytes)
        size_bytes = min(effect.max_bytes, MOST_BYTES, room)
        self.reading_bytes += size_bytes
        read = self._loop.run_in_executor(
            None, self._storage.read_snapshot, effect.snapshot_id, effect.position, size_bytes
        )
        read.add_done_callback(lambda read: self._read(effect, size_bytes, read))

    def _read(self, effect: AnswerSnapshot, size_bytes: int, read: asyncio.Future[bytes]) -> None:
        self.reading_bytes -= size_bytes
        try:
            data = read.result()
        except (FileNotFoundError, StorageError) as error:
            self._failed(effect, error)
        else:
            self._done(effect, data)

    def __repr__(self) -> str:
        return f"<SnapshotReads {self.reading_bytes} bytes>"
