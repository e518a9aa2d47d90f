"""The append purgatory: answers that wait until the log is committed up to where it was when they were
decided.

Decisions come in the order of the log, so answers leave in the order in which they came.
"""

from __future__ import annotations

from collections import deque

from kraftd.server.call import Call
from kraftd.wire.primitives import Buffer

Parked = tuple[Call, list[Buffer]]


class ParkedAnswers:
    """Framed answers with the offset (exclusive) that must be committed before they may be given."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Call, list[Buffer]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, end_offset: int, call: Call, parts: list[Buffer]) -> None:
        self._waiting.append((end_offset, call, parts))

    def release(self, high_watermark: int) -> list[Parked]:
        """Those that wait for nothing above the high watermark, in the order in which they came."""
        waiting = self._waiting
        released = []
        while waiting and waiting[0][0] <= high_watermark:
            _, call, parts = waiting.popleft()
            released.append((call, parts))
        return released

    def abandon(self) -> list[Parked]:
        """All of them: leadership is lost, and with it the power to tell whether they will hold."""
        abandoned = [(call, parts) for _, call, parts in self._waiting]
        self._waiting.clear()
        return abandoned

    def __repr__(self) -> str:
        ends = f", offsets {self._waiting[0][0]} to {self._waiting[-1][0]}" if self._waiting else ""
        return f"<ParkedAnswers {len(self._waiting)}{ends}>"
