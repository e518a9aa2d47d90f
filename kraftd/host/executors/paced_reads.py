"""Reads for clients' fetches, limited in bytes per callback of the event loop.

The rest waits for the next callback, connection by connection, so that a large fetch does not delay the
others. A read whose secrets take longer to blank is continued a slice per callback; while several of these
are unfinished, no other read begins. The answers of a connection keep the order of its requests, which its
slots give them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kraftd.requests.effects import AnswerRecords

CALLBACK_BYTES = 3 << 20  # read, searched for secrets and answered in 2 to 6 ms
SLICE_BYTES = CALLBACK_BYTES // 2  # what a slice of an unfinished read counts for
MAX_UNFINISHED = 4  # each holds its records twice

Rest = Iterator[None]
_DONE = object()


class PacedReads:
    """`read` reads for an answer and returns the bytes, or the rest of its work in slices; `late` performs
    reads in a callback of their own.
    """

    def __init__(
        self,
        read: Callable[[AnswerRecords], int | Rest],
        late: Callable[[Callable[[], None]], None],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._read = read
        self._late = late
        self._call_soon = call_soon
        self._waiting: dict[int, deque[AnswerRecords]] = {}  # by connection, the next one first
        self._unfinished: deque[tuple[int, Rest]] = deque()  # with their connections
        self._read_bytes = 0  # in this callback, and a few small reads before: each new callback has its cost
        self._is_due = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._unfinished)

    def begin(self, effect: AnswerRecords) -> None:
        """Read at once, or when the connections before this one have been read."""
        if self._waiting or not self._has_room():
            self._waiting.setdefault(effect.call.connection_id, deque()).append(effect)
        else:
            self._read_for(effect)
        if self._waiting or self._unfinished or self._read_bytes >= SLICE_BYTES:
            self._schedule_slice()

    def finish(self, effect: AnswerRecords, rest: Rest) -> None:
        """Continue the rest of a read that had to wait for a thread, a slice per callback."""
        self._unfinished.append((effect.call.connection_id, rest))
        self._schedule_slice()

    def forget(self, connection_id: int) -> None:
        """Read nothing more for a connection that is gone."""
        self._waiting.pop(connection_id, None)
        if self._unfinished:
            self._unfinished = deque(one for one in self._unfinished if one[0] != connection_id)

    def _has_room(self) -> bool:
        return self._read_bytes < CALLBACK_BYTES and len(self._unfinished) < MAX_UNFINISHED

    def _read_for(self, effect: AnswerRecords) -> None:
        found = self._read(effect)
        if isinstance(found, int):
            self._read_bytes += found
        else:
            self._read_bytes += SLICE_BYTES
            self._unfinished.append((effect.call.connection_id, found))

    def _schedule_slice(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._read_slice)

    def _read_slice(self) -> None:
        self._is_due = False
        self._read_bytes = 0
        if self._waiting or self._unfinished:
            self._late(self._read_waiting)
            self._schedule_slice()

    def _read_waiting(self) -> None:
        if self._unfinished:
            connection_id, rest = self._unfinished.popleft()
            self._read_bytes += SLICE_BYTES
            if next(rest, _DONE) is not _DONE:
                self._unfinished.append((connection_id, rest))  # after the others
        while self._waiting and self._has_room():
            connection_id = next(iter(self._waiting))
            effects = self._waiting.pop(connection_id)
            self._read_for(effects.popleft())
            if effects:
                self._waiting[connection_id] = effects  # after the others

    def __repr__(self) -> str:
        return f"<PacedReads, {len(self)} wait, {len(self._unfinished)} of them unfinished>"
