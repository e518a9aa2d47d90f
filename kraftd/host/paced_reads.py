"""Reads for clients' fetches, limited in bytes per callback of the event loop.

The rest waits for the next callback, connection by connection, so that a large fetch does not delay the
others. The answers of a connection keep the order of its requests, which its slots give them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftd.client_node.effects import AnswerFetch

CALLBACK_BYTES = 4 << 20  # read and answered in about 3 ms


class PacedReads:
    """`read` reads for an answer and returns the bytes; `late` performs reads in a callback of their own."""

    def __init__(
        self,
        read: Callable[[AnswerFetch], int],
        late: Callable[[Callable[[], None]], None],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._read = read
        self._late = late
        self._call_soon = call_soon
        self._waiting: dict[int, deque[AnswerFetch]] = {}  # by connection, the next one first
        self._read_bytes = 0  # in this callback
        self._is_due = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def begin(self, effect: AnswerFetch) -> None:
        """Read at once, or when the connections before this one have been read."""
        if self._waiting or self._read_bytes >= CALLBACK_BYTES:
            self._waiting.setdefault(effect.call.connection_id, deque()).append(effect)
        else:
            self._read_bytes += self._read(effect)
        self._schedule_slice()

    def forget(self, connection_id: int) -> None:
        """Read nothing more for a connection that is gone."""
        self._waiting.pop(connection_id, None)

    def _schedule_slice(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._read_slice)

    def _read_slice(self) -> None:
        self._is_due = False
        self._read_bytes = 0
        if self._waiting:
            self._late(self._read_waiting)
            self._schedule_slice()

    def _read_waiting(self) -> None:
        while self._waiting and self._read_bytes < CALLBACK_BYTES:
            connection_id = next(iter(self._waiting))
            effects = self._waiting.pop(connection_id)
            self._read_bytes += self._read(effects.popleft())
            if effects:
                self._waiting[connection_id] = effects  # behind the others

    def __repr__(self) -> str:
        return f"<PacedReads, {len(self)} of {len(self._waiting)} connections wait>"
