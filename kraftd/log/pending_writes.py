"""The queued work for the disk: writes, truncations, new segments and removals, in order.

The event loop adds pieces. The syncing thread takes all of them, performs them and syncs the file once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kraftd.log.errors import DiskFull
from kraftd.log.segment import Segment

Piece = Callable[[], None]


class Write:
    """Bytes for the end of a segment, gathered until the next sync."""

    __slots__ = ("chunks", "position", "segment")

    def __init__(self, segment: Segment, position: int) -> None:
        self.segment = segment
        self.position = position
        self.chunks: list[bytes | memoryview] = []

    def __call__(self) -> None:
        file = self.segment.file
        assert file is not None  # made by an earlier piece
        file.write(self.position, self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks))


class Removal:
    """The removal of files that are no longer needed; on a full disk it may come early."""

    __slots__ = ("remove", "segments")

    def __init__(self, segments: list[Segment], remove: Piece) -> None:
        self.segments = segments
        self.remove = remove

    def __call__(self) -> None:
        self.remove()


class PendingWrites:
    """The queued pieces. `lock` guards them, and what their owner changes together with them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._pieces: list[Piece] = []
        self._unsynced: Segment | None = None  # written to, and not synced yet

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: Piece) -> None:
        with self.lock:
            self._pieces.append(piece)

    def write(self, segment: Segment, position: int, data: bytes | memoryview) -> None:
        """Add bytes at a segment's end; they join the previous write if nothing came between."""
        with self.lock:
            last = self._pieces[-1] if self._pieces else None
            if type(last) is not Write or last.segment is not segment:
                last = Write(segment, position)
                self._pieces.append(last)
            last.chunks.append(data)

    def take(self) -> list[Piece]:
        """Remove and return all queued pieces, for `perform`. The caller holds the lock."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def perform(self, pieces: list[Piece]) -> None:
        """Perform the pieces and make them durable.

        Raises DiskFull, with the rest queued again and removals done early; StorageError.
        """
        done = 0
        try:
            for piece in pieces:
                if type(piece) is Write:
                    self._unsynced = piece.segment
                piece()
                done += 1
            if self._unsynced is not None and self._unsynced.file is not None:
                self._unsynced.file.sync()
            self._unsynced = None
        except DiskFull:
            with self.lock:
                self._pieces[:0] = pieces[done:]
            if done < len(pieces):
                self._make_room(pieces[done])
            raise

    def forget(self, segment: Segment) -> None:
        """Forget that the segment needs a sync: its file is about to be removed."""
        if self._unsynced is segment:
            self._unsynced = None

    def _make_room(self, failed: Piece) -> None:
        """On a full disk, perform at once the removals that follow the write that failed.

        Only files older than that write's segment are removed: all earlier work on them is done.
        """
        if type(failed) is not Write:
            return
        with self.lock:
            removals = [piece for piece in self._pieces if type(piece) is Removal]
        for piece in removals:
            if all(each.base_offset < failed.segment.base_offset for each in piece.segments):
                piece()
                with self.lock:
                    self._pieces.remove(piece)

    def __repr__(self) -> str:
        return f"<PendingWrites {len(self._pieces)} pieces>"
